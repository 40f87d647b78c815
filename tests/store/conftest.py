"""An empty store in memory for each test."""

from collections.abc import Iterator

import pytest

from store.embedded import Store


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open(None)
    yield opened
    opened.close()
