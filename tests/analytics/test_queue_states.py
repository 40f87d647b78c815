"""Counts of queues over a window, against the same counted minute by minute."""

from collections import Counter, defaultdict
from datetime import timedelta
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.metrics import REGISTRY
from analytics.queue_states import AMOUNTS, LENGTHS, QUANTILES
from domain.metric import Ask, Sample
from domain.quantity import MICRO_PER_GPU
from domain.window import Window
from tests.laws import law

MINUTE = 60_000
COUNTS = ("waiting_workloads", "waiting_micro_gpus", "held_micro_gpus", "idle_micro_gpus", "total_micro_gpus")
Minutes = dict[str, list[dict[str, int] | None]]


@st.composite
def minutes(draw: st.DrawFn, *, gaps: bool = True) -> Minutes:
    """What two queues told in each of a few minutes; None: nothing."""
    small = st.integers(0, 3)
    told = st.fixed_dictionaries(
        {"waiting_workloads": small, "waiting": small, "held": st.integers(0, 20), "idle": small}
    )
    length = draw(st.integers(1, 8))
    return {
        queue: draw(st.lists(st.one_of(st.none(), told) if gaps else told, min_size=length, max_size=length))
        for queue in ("a", "b")
    }


def rows_of(told: Minutes, *, apart: bool) -> list[dict[str, Any]]:
    """A row per stretch in which nothing changed, or one per minute."""
    rows: list[dict[str, Any]] = []
    for queue, counts in told.items():
        before = None
        for number, each in enumerate(counts):
            if each is None:
                before = None
                continue
            row = {
                "cluster": "east",
                "queue": queue,
                "start_ms": number * MINUTE,
                "end_ms": (number + 1) * MINUTE,
                "waiting_workloads": each["waiting_workloads"],
                "waiting_micro_gpus": each["waiting"] * MICRO_PER_GPU,
                "held_micro_gpus": each["held"] * MICRO_PER_GPU,
                "idle_micro_gpus": each["idle"] * MICRO_PER_GPU,
                "total_micro_gpus": (each["held"] + each["idle"]) * MICRO_PER_GPU,
            }
            if before is not None and before == each and not apart:
                rows[-1]["end_ms"] = row["end_ms"]
            else:
                rows.append(row)
            before = each
    return rows


def said(name: str, rows: list[dict[str, Any]], *by: str) -> list[Sample]:
    compute = REGISTRY[name].compute
    assert compute is not None
    window = Window.before(10 * MINUTE, timedelta(milliseconds=10 * MINUTE))
    return compute(rows, Ask(window=window, by=by))


@law(30)
@given(told=minutes())
def test_however_the_time_is_cut_the_figures_are_the_same(told: Minutes) -> None:
    for name in REGISTRY:
        if name.startswith("queue_state_"):
            for by in ((), ("queue",)):
                assert said(name, rows_of(told, apart=True), *by) == said(
                    name, rows_of(told, apart=False), *by
                )


@given(told=minutes())
def test_the_figures_are_those_of_each_minute_counted(told: Minutes) -> None:
    rows = rows_of(told, apart=False)
    together = [
        dict(sum((Counter(each) for each in both if each), Counter[str]()))
        for both in zip(*told.values(), strict=True)
        if any(each is not None for each in both)
    ]
    if not together:
        assert [sample.value for sample in said("queue_state_seconds", rows)] == [None]
        return
    depths = sorted(each.get("waiting_workloads", 0) for each in together)
    found = {sample.labels["quantile"]: sample.value for sample in said("queue_state_depth_workloads", rows)}
    assert found == {q: depths[ceil(float(q) * len(depths)) - 1] for q in QUANTILES}
    [mean] = said("queue_state_mean_depth_workloads", rows)
    assert mean.value == pytest.approx(sum(depths) / len(depths))
    lengths = {sample.labels["condition"]: sample.value for sample in said("queue_state_seconds", rows)}
    assert lengths.keys() == LENGTHS.keys()
    assert lengths["told"] == 60 * len(together)
    assert lengths["waiting"] == 60 * sum(depth > 0 for depth in depths)
    idle = [each for each in together if each.get("waiting") and each.get("idle")]
    assert lengths["idle_while_waiting"] == 60 * len(idle)
    hours = {sample.labels["condition"]: sample.value for sample in said("queue_state_gpu_hours", rows)}
    assert hours.keys() == AMOUNTS.keys()
    assert hours["idle_while_waiting"] == pytest.approx(sum(each["idle"] for each in idle) / 60)
    assert hours["held"] == pytest.approx(sum(each.get("held", 0) for each in together) / 60)
    assert hours["total"] == pytest.approx((hours["held"] or 0) + (hours["idle"] or 0))
    [ratio] = said("queue_state_held_ratio", rows)
    assert ratio.value is None or 0 <= ratio.value <= 1


# In a gap some conditions are not known, and a gap at the edge of a window is none.
@given(told=minutes(gaps=False), cut=st.integers(1, 7))
def test_time_and_gpu_hours_add_up_over_two_windows(told: Minutes, cut: int) -> None:
    parts = [
        rows_of({queue: counts[chosen] for queue, counts in told.items()}, apart=False)
        for chosen in (slice(None, cut), slice(cut, None))
    ]
    for name in ("queue_state_seconds", "queue_state_gpu_hours"):
        summed: dict[str, float] = defaultdict(float)
        for sample in (each for rows in parts for each in said(name, rows)):
            summed[sample.labels.get("condition", "")] += sample.value or 0
        for sample in said(name, rows_of(told, apart=False)):
            condition = sample.labels["condition"]
            if condition != "longest_waiting":
                assert summed[condition] == pytest.approx(sample.value), condition


def test_the_longest_stretch_is_longer_than_any_of_its_parts() -> None:
    counts: dict[str, int] = {"waiting_workloads": 1, "waiting": 0, "held": 0, "idle": 0}
    none = {**counts, "waiting_workloads": 0}
    # The two queues wait one after the other: together they wait for four minutes.
    told: Minutes = {"a": [counts, counts, none, none, none], "b": [none, none, counts, counts, none]}
    [longest] = [
        sample
        for sample in said("queue_state_seconds", rows_of(told, apart=False))
        if sample.labels["condition"] == "longest_waiting"
    ]
    assert longest.value == 240
