"""What the comparisons share: `city` is imported once in a run of the tests, and copied."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.recording import import_recording
from domain.policy import Policy
from service.books import books_of
from service.clocks import EndOfData
from store.embedded import Store
from tests.recordings.comparing import TENANCY
from tests.shared import shared


@pytest.fixture(scope="session")
def city_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store file of the recording `city` with all books kept; made by the first worker that asks."""
    root = tmp_path_factory.getbasetemp()
    folder = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    file = folder / "city.duckdb"
    with (folder / "city.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            half = folder / "city.half.duckdb"
            store = Store.open(half)
            import_recording(shared("data/recorded/city"), cluster="city", sink=store)
            books_of(store, tenancy=TENANCY, policy=Policy(), clock=EndOfData(store)).refresh()
            store.close()
            half.rename(file)
    return file


@pytest.fixture(scope="module")
def city_store(city_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The recording `city` with all books kept, a copy for one file of tests."""
    copy = tmp_path_factory.mktemp("city") / "gpuledger.duckdb"
    shutil.copy(city_file, copy)
    store = Store.open(copy)
    yield store
    store.close()
