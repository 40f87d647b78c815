"""Laws of the bounded slowdown, and its percentiles against brute force."""

from datetime import timedelta
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.metrics.bounded_slowdown_ratio import METRIC
from analytics.slowdown import bounded_slowdown, slowdown_percentiles
from domain.metric import Ask
from domain.policy import Policy
from domain.window import Window

MINUTE = 60_000
LENGTHS = st.integers(0, 10**9)


@given(LENGTHS, LENGTHS, st.integers(1, 10**6))
def test_nobody_is_faster_than_without_a_wait(waited_ms: int, ran_ms: int, floor_ms: int) -> None:
    found = bounded_slowdown(waited_ms, ran_ms, floor_ms)
    assert found >= bounded_slowdown(0, ran_ms, floor_ms) == 1
    assert found <= bounded_slowdown(waited_ms + 1, ran_ms, floor_ms)


@given(LENGTHS, st.integers(1, 10**9), st.integers(2, 9))
def test_above_the_floor_only_the_ratio_of_wait_and_run_counts(waited: int, ran: int, times: int) -> None:
    assert bounded_slowdown(waited * times, ran * times, 1) == bounded_slowdown(waited, ran, 1)


def said(rows: list[dict[str, Any]], **policy: Any) -> dict[tuple[str, ...], float | None]:
    ask = Ask(window=Window(start_ms=0, end_ms=1), by=("team",), policy=Policy(**policy))
    return {tuple(one.labels.values()): one.value for one in slowdown_percentiles(pl.DataFrame(rows), ask)}


def test_percentiles_are_those_of_each_teams_workloads_whatever_the_others_are_called() -> None:
    mine = [{"team": "a", "waited_ms": waited * MINUTE, "ran_ms": MINUTE} for waited in range(101)]
    theirs = [{"team": "b", "waited_ms": 0, "ran_ms": 1}]
    # Slowdowns of 1 to 101.
    expected = {("0.5",): 51.0, ("0.9",): 91.0, ("0.99",): 100.0}
    told = said([*theirs, *mine])
    assert {labels: told["a", *labels] for labels in expected} == expected
    assert told["b", "0.99"] == 1
    renamed = [{**row, "team": {"a": "b", "b": "a"}[str(row["team"])]} for row in [*theirs, *mine]]
    assert {labels: said(renamed)["b", *labels] for labels in expected} == expected


def test_the_floor_is_a_setting() -> None:
    rows = [{"team": "a", "waited_ms": 10 * MINUTE, "ran_ms": MINUTE}]
    assert said(rows)["a", "0.5"] == 11
    assert said(rows, slowdown_shortest_run=timedelta(minutes=11))["a", "0.5"] == 1


def test_unless_it_is_asked_for_work_without_gpus_is_left_out() -> None:
    assert METRIC.unless_asked == {"population": ("gpu",)}
