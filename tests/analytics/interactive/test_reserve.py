"""The interactive reserve and domination, against sums written out over small pools and all instants."""

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.interactive.domination import domination
from analytics.interactive.reserve import Room, pool_now, shortfall, shortfall_over
from domain.policy import Policy
from domain.window import Window

Rows = list[dict[str, Any]]
POLICY = Policy()
END = 30
COLUMNS = {
    "what": pl.String,
    "node": pl.String,
    "allocatable": pl.Int64,
    "schedulable": pl.Boolean,
    "micro_gpus": pl.Int64,
    "service_class": pl.String,
    "start_ms": pl.Int64,
    "end_ms": pl.Int64,
}
CLASSES = st.sampled_from(["interactive", "batch", "best_effort", "unclassified", ""])
USERS = st.sampled_from(["", "ann", "bob", "cid"])


@st.composite
def stretches(draw: st.DrawFn) -> Rows:
    """Nodes whose capacity changes, without a gap between their stretches, and pods on them."""
    rows: Rows = []
    for node in ("n1", "n2"):
        cuts = sorted(draw(st.sets(st.integers(0, END + 5), min_size=1, max_size=3)))
        for start, end in zip(cuts, [*cuts[1:], draw(st.sampled_from([None, END + 9]))], strict=True):
            offered = {"allocatable": draw(st.integers(0, 8)), "schedulable": draw(st.booleans())}
            rows.append({"what": "node", "node": node, "start_ms": start, "end_ms": end, **offered})
        for _ in range(draw(st.integers(0, 4))):
            start = draw(st.integers(0, END))
            end = draw(st.none() | st.integers(start, END + 9))
            pod = {"micro_gpus": draw(st.integers(1, 4)), "service_class": draw(CLASSES)}
            rows.append({"what": "held", "node": node, "start_ms": start, "end_ms": end, **pod})
    return rows


def frame(rows: Rows) -> pl.DataFrame:
    """The stretches as a metric gets them."""
    return pl.DataFrame([{name: row.get(name) for name in COLUMNS} for row in rows], schema=COLUMNS)


def missing_at(rows: Rows, at_ms: int) -> float:
    """The shortfall in the millisecond that begins then."""
    now = [
        row for row in rows if row["start_ms"] <= at_ms and (row["end_ms"] is None or row["end_ms"] > at_ms)
    ]
    capacity = free = interactive = 0
    for node in ("n1", "n2"):
        held = sum(row["micro_gpus"] for row in now if row["what"] == "held" and row["node"] == node)
        offered = sum(
            row["allocatable"]
            for row in now
            if row["what"] == "node" and row["node"] == node and row["schedulable"]
        )
        capacity += max(held, offered)
        free += max(0, offered - held)
    interactive = sum(row["micro_gpus"] for row in now if row.get("service_class") == "interactive")
    return max(0.0, 0.2 * capacity - free - interactive)


@given(stretches(), st.integers(0, END), st.integers(0, END))
def test_a_windows_shortfall_is_that_of_each_millisecond_added_up(
    rows: Rows, first: int, second: int
) -> None:
    window = Window(start_ms=min(first, second), end_ms=max(first, second) + 1)
    expected = sum(missing_at(rows, at_ms) for at_ms in range(window.start_ms, window.end_ms))
    assert abs(shortfall_over(frame(rows), window, POLICY) - expected) < 1e-6


@given(stretches(), st.integers(0, END))
def test_the_shortfall_now_is_that_of_the_last_millisecond(rows: Rows, at_ms: int) -> None:
    now = [
        row for row in rows if row["start_ms"] <= at_ms and (row["end_ms"] is None or row["end_ms"] > at_ms)
    ]
    assert abs(shortfall(pool_now(now, POLICY), POLICY) - missing_at(rows, at_ms)) < 1e-9


@given(stretches(), st.integers(1, END), st.integers(1, END))
def test_two_windows_in_a_row_add_up(rows: Rows, first: int, second: int) -> None:
    parts = [Window(start_ms=0, end_ms=first), Window(start_ms=first, end_ms=first + second)]
    whole = Window(start_ms=0, end_ms=first + second)
    added = sum(shortfall_over(frame(rows), part, POLICY) for part in parts)
    assert abs(shortfall_over(frame(rows), whole, POLICY) - added) < 1e-6


def test_what_may_be_preempted_counts_only_by_setting() -> None:
    full = Room(capacity=100, preemptible=100)
    assert shortfall(full, POLICY) == 20.0
    assert shortfall(full, Policy(reserve_counts_preemptible=True)) == 0.0


PODS = st.lists(st.tuples(CLASSES, USERS, st.none() | st.integers(1, 6)), max_size=6)


@given(st.integers(0, 20), PODS, st.sets(st.sampled_from(["ann", "bob"])))
def test_who_dominates_is_who_holds_more_than_half_of_the_interactive_pool(
    offered: int, pods: list[tuple[str, str, int | None]], waiting: set[str]
) -> None:
    rows: Rows = [{"what": "node", "node": "n", "allocatable": offered, "schedulable": True}]
    rows += [
        {"what": "held", "node": "n", "micro_gpus": micro, "service_class": name, "user_name": user}
        for name, user, micro in pods
    ]
    rows += [{"what": "waiting", "node": "", "user_name": user} for user in waiting]
    capacity = max(offered, sum(micro or 0 for _, _, micro in pods))
    interactive = [(user, micro or 0) for name, user, micro in pods if name == "interactive"]
    pool = max(0.2 * capacity, sum(micro for _, micro in interactive))
    held = {who: sum(micro for user, micro in interactive if user == who) for who in ("ann", "bob", "cid")}
    expected = {
        who
        for who, micro in held.items()
        if micro > 0.5 * pool and (waiting - {who} or micro > 0.5 * 0.2 * capacity)
    }
    found = domination(rows, POLICY)
    assert found.dominating(POLICY) == expected
    assert len(expected) <= 1
    assert found.largest == (max(held.values()) / pool if pool else 0.0)
