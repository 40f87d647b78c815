"""What is stepped over because it had ceased to count by then changes no answer."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.evaluate import parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask
from domain.window import Window
from store.embedded import Store
from store.lives import OF_WORKLOADS
from tests.laws import law
from tests.random_lives import HOUR, random_lives, write

END_MS = 72 * HOUR
BY_SQL = {metric.sql: metric.name for metric in REGISTRY.values()}


def answers(store: Store, ask: Ask) -> Iterator[tuple[str, list[str]]]:
    """The rows of every metric, as text, in order."""
    for sql, name in BY_SQL.items():
        yield name, sorted(map(_told, store.rows(sql, parameters(REGISTRY[name], ask))))


def _told(row: dict[str, Any]) -> str:
    """Waits come in lists side by side, in no order."""
    lists = [value for value in row.values() if isinstance(value, list)]
    waits = sorted(zip(*lists, strict=True))
    return repr([{name: value for name, value in row.items() if not isinstance(value, list)}, waits])


def check(seed: int, *, as_of_hours: int, window_hours: int) -> None:
    """Compare the answers about a window with those of a store in which nothing ever ceased to count."""
    store = Store.open(None)
    write(store, random_lives(Random(seed), workloads=200, end_ms=END_MS))
    as_of_ms = as_of_hours * HOUR
    ask = Ask(window=Window(start_ms=as_of_ms - window_hours * HOUR, end_ms=as_of_ms), by=())
    stepping = list(answers(store, ask))
    with store.transaction() as connection:
        for table in OF_WORKLOADS:
            connection.execute(f"update {table} set open_until_ms = 9223372036854775807")  # noqa: S608
    for now, before in zip(stepping, answers(store, ask), strict=True):
        assert now == before
    store.close()


def test_answers_about_a_past_instant_are_those_of_reading_everything() -> None:
    check(9, as_of_hours=60, window_hours=24)


@pytest.mark.long
@law(40, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 80), st.integers(1, 48))
def test_so_are_those_about_any_instant_and_window(seed: int, as_of_hours: int, window_hours: int) -> None:
    check(seed, as_of_hours=as_of_hours, window_hours=window_hours)
