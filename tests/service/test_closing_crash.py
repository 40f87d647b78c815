"""Whoever dies while a month is closed leaves it open, or closed whole with its corrections booked."""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from store import statements as kept
from store.embedded import Store
from tests.service.closing_world import closed, learn, look, site
from tests.service.test_chargeback import hours

MONTH, NEXT = 31 * 24, 61 * 24
MOMENTS = ("at the second write", "before the commit", "after the commit")


@pytest.fixture(scope="module")
def october(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store on disk whose October is closed, with a correction of it that no statement has."""
    path = tmp_path_factory.mktemp("closing") / "store.duckdb"
    made = site()
    closed(made, "2026-10", MONTH + 5)
    learn(made, "late", 30, 35, team="green")
    look(made, MONTH + 30)
    made.copy_to(path)
    made.close()
    return path


class Dying:
    """A connection that dies at its second write."""

    def __init__(self, connection: Any) -> None:
        self._connection, self._writes = connection, 0

    def execute(self, sql: str, params: Any = None) -> Any:
        self._writes += not sql.startswith("select")
        if self._writes == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._connection.execute(sql, params)


def close_and_die(path: Path, moment: str) -> None:
    store, whole = Store.open(path), Store.transaction

    @contextmanager
    def transaction(self: Store) -> Iterator[Any]:
        with whole(self) as connection:
            yield Dying(connection) if moment == "at the second write" else connection
            if moment == "before the commit":
                os.kill(os.getpid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    begin: Callable[..., Any] = kept.close

    def close(*args: Any, **named: Any) -> None:
        Store.transaction = transaction  # type: ignore[method-assign, assignment]
        begin(*args, **named)

    kept.close = close
    closed(store, "2026-11", NEXT + 5)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_leaves_the_old_state_or_the_new(october: Path, tmp_path: Path, moment: str) -> None:
    path = tmp_path / "store.duckdb"
    shutil.copy(october, path)
    # A fork of this process would inherit locks of threads of DuckDB.
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.service.test_closing_crash"])
    child = forks.Process(target=close_and_die, args=(path, moment))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    store = Store.open(path)
    months = [head.month for head in kept.closed_months(store)]
    booked = [each.booked_in for each in kept.corrections(store)]
    if moment == "after the commit":
        assert (months, booked) == (["2026-10", "2026-11"], ["2026-11"])
        assert kept.closed_month(store, "2026-11") is not None
    else:
        assert (months, booked) == (["2026-10"], [""])
        # And it can be closed.
        assert closed(store, "2026-11", NEXT + 6).closing is not None
    assert hours(0) == kept.closed_months(store)[0].start_ms
    store.close()
