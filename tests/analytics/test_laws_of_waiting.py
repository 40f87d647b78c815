"""What waits are made of, what flows through the queue, and how often work is thrown out: laws and counts."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.censored import Stay, steps, survival_quantiles
from domain.metric import Sample
from domain.window import MS_PER_SECOND
from tests.analytics.test_metric_laws import INSTANTS, WITHOUT_SHRINKING, Asked, Given, books
from tests.laws import law

Row = dict[str, Any]
WAITING = {"queued": "quota", "checking": "checks", "placing": "placing"}
# Length of the window that `Asked.said` asks about.
LENGTH = 40


def values(samples: list[Sample], label: str) -> dict[str, float]:
    return {sample.labels[label]: sample.value or 0.0 for sample in samples if sample.labels}


def within(row: Row, start_ms: int, end_ms: int) -> int:
    """How much of a stretch lies in a window."""
    until: int = end_ms if row["end_ms"] is None else min(row["end_ms"], end_ms)
    begin: int = max(row["start_ms"], start_ms)
    return max(until - begin, 0)


def first_waits(tables: Given) -> Iterator[Row]:
    """Waiting spans before the first start-up or run of their workload."""
    placed: set[str] = set()
    for span in tables["span"]:
        if span["state"] in {"starting", "running"}:
            placed.add(span["workload_uid"])
        elif span["state"] in WAITING and span["workload_uid"] not in placed:
            yield span


def waiting_at(tables: Given, at_ms: int) -> int:
    """How many workloads wait just before an instant."""
    return len(
        {
            span["workload_uid"]
            for span in tables["span"]
            if span["state"] in WAITING
            and span["start_ms"] < at_ms
            and (span["end_ms"] is None or span["end_ms"] >= at_ms)
            and span["end_ms"] != span["start_ms"]
        }
    )


@given(books(), INSTANTS)
@law(12, phases=WITHOUT_SHRINKING)
def test_components_and_flows_are_those_of_a_count(tables: Given, as_of_ms: int) -> None:
    start_ms = max(as_of_ms - LENGTH, 0)
    with Asked.of(tables) as asked:
        components = values(asked.said("queue_wait_component_seconds", as_of_ms, ()), "component")
        flows = values(asked.said("queue_flow_per_second", as_of_ms, ()), "flow")
        pods = values(asked.said("member_wait_gpu_hours", as_of_ms, ("team",)), "team")
    counted = dict.fromkeys(WAITING.values(), 0)
    for span in first_waits(tables):
        counted[WAITING[span["state"]]] += within(span, start_ms, as_of_ms)
    if components:
        assert components == {name: ms / MS_PER_SECOND for name, ms in counted.items()}
        seconds = (as_of_ms - start_ms) / MS_PER_SECOND
        grown = (flows["arrivals"] - flows["departures"]) * seconds
        assert grown == pytest.approx(waiting_at(tables, as_of_ms) - waiting_at(tables, start_ms))
    whose = {row["workload_uid"]: row["team"] for row in tables["workload"]}
    for team in pods:
        amount = sum(
            (wait["micro_gpus"] or 0) * within(wait, start_ms, as_of_ms)
            for wait in tables["member_wait"]
            if whose[wait["workload_uid"]] == team
        )
        assert pods[team] == pytest.approx(amount / 1e6 / 3.6e6)


@given(books(), st.integers(LENGTH, 100))
@law(12, phases=WITHOUT_SHRINKING)
def test_rates_times_what_they_are_divided_by_are_counts(tables: Given, as_of_ms: int) -> None:
    with Asked.of(tables) as asked:
        names = ("preemptions_per_attempt_ratio", "restarts_per_attempt_ratio")
        preempted, restarted = (asked.said(name, as_of_ms, ()) for name in names)
        hours = asked.said("preemptions_per_1000_gpu_hours", as_of_ms, ())
        given_up = asked.said("cancelled_while_waiting_ratio", as_of_ms, ())
        cancelled = asked.said("cancelled_while_waiting_workloads", as_of_ms, ())
        soon = asked.said("protection_broken_preemptions", as_of_ms, ())
    start_ms = as_of_ms - LENGTH
    attempts = [row for row in tables["attempt"] if start_ms <= row["start_ms"] < as_of_ms]
    preemptions = [
        row for row in tables["eviction"] if row["preempted"] and start_ms <= row["at_ms"] < as_of_ms
    ]
    count = sum(1 + row["missed"] for row in preemptions)
    if attempts:
        assert (preempted[0].value or 0) * len(attempts) == pytest.approx(count)
        assert (restarted[0].value or 0) * len(attempts) >= sum(row["number"] > 1 for row in attempts) - 1e-9
    else:
        assert {sample.value for sample in (*preempted, *restarted)} == {None}
    held = [
        (row, within({"start_ms": row["bound_ms"], "end_ms": row["released_ms"]}, start_ms, as_of_ms))
        for row in tables["holding"]
    ]
    amount = sum((row["micro_gpus"] or 0) * ms for row, ms in held)
    if amount and all(row["micro_gpus"] is not None for row, ms in held if ms):
        assert (hours[0].value or 0) * amount / 1e6 / 3.6e9 == pytest.approx(count)
    else:
        assert hours[0].value is None
    # A share of nobody is undefined, one of somebody lies between none and all.
    assert (given_up[0].value is None) == (cancelled[0].value is None)
    assert given_up[0].value is None or 0 <= given_up[0].value <= 1
    # All lie within one protection window, so that only the first of each workload is not too soon.
    classes = {row["workload_uid"]: row["service_class"] for row in tables["workload"]}
    earlier = [row for row in tables["eviction"] if row["preempted"] and row["at_ms"] < as_of_ms]
    first: dict[str, int] = {}
    too_soon = 0
    for row in sorted(earlier, key=lambda each: each["at_ms"]):
        uid = row["workload_uid"]
        if uid in first and row["at_ms"] >= start_ms and classes[uid] != "best_effort":
            too_soon += 1
        first.setdefault(uid, row["at_ms"])
    assert soon[0].value in (too_soon, None)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 9), st.booleans(), st.integers(1, 4)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([0.25, 0.5, 0.9]),
)
def test_a_weight_counts_as_that_many_equal_waits(
    drawn: list[tuple[int, int, bool, int]], quantile: float
) -> None:
    weighted = [Stay(entry, entry + length, placed, weight) for entry, length, placed, weight in drawn]
    repeated = [Stay(*stay[:3]) for stay in weighted for _ in range(stay.weight)]
    ours, theirs = (survival_quantiles(stays, [quantile]) for stays in (weighted, repeated))
    assert ours is not None
    assert theirs is not None
    assert (ours[0].value_ms, ours[0].lower_bound) == (theirs[0].value_ms, theirs[0].lower_bound)
    one, other = steps(weighted), steps(repeated)
    for column in ("age_ms", "at_risk", "placed"):
        assert getattr(one, column).tolist() == getattr(other, column).tolist()
    # However much they weigh, they rest on so many waits.
    assert ours[0].few or len(weighted) >= 5
