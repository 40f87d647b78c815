"""How often a law is tried: a third of its examples among all tests, all of them among the long ones."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

_Test = TypeVar("_Test", bound=Callable[..., Any])
# Without the prefix of the settings: the product, which tests start, refuses settings that it does not know.
_ALL = os.environ.get("TEST_EXAMPLES") == "all"


def law(examples: int, *, few: int | None = None, **others: Any) -> Callable[[_Test], _Test]:
    """
    Mark a test as a law that takes seconds.

    Args:
        examples: how many are tried by `make long`.
        few: how many are tried among all tests; by default a third.
        others: as Hypothesis' settings.
    """
    tried = settings(max_examples=examples if _ALL else few or max(2, examples // 3), **others)

    def marked(test: _Test) -> _Test:
        tried(test)
        pytest.mark.law(test)
        return test

    return marked
