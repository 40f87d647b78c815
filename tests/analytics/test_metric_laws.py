"""Laws that every metric keeps, on lives made at random and read through the store."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask, Row, Sample
from domain.window import Window
from service.reading import Read, read_once
from tests.golden.cases import store_of
from tests.laws import law

Given = dict[str, list[dict[str, Any]]]

STATES = ("held", "queued", "checking", "placing", "starting", "running", "backoff", "draining")
CLASSES = ("interactive", "batch", "best_effort", "unclassified")
TEAMS = ("ads", "nlp", "search")
MICRO = st.sampled_from([None, 500_000, 1_000_000, 8_000_000])
LATEST_MS = 100
# Each example opens stores; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
INSTANTS = st.integers(0, LATEST_MS)


@st.composite
def stretches(draw: st.DrawFn) -> tuple[int, int | None]:
    """Start and end, the end perhaps open."""
    start, length = draw(INSTANTS), draw(st.none() | st.integers(0, LATEST_MS))
    return start, None if length is None else start + length


@st.composite
def courses(draw: st.DrawFn) -> list[tuple[str, int, int | None]]:
    """States in a row without a hole, from the submission to now or to the end."""
    at_ms = draw(INSTANTS)
    found: list[tuple[str, int, int | None]] = []
    for state in draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=4)):
        until_ms = at_ms + draw(st.integers(0, 40))
        found.append((state, at_ms, until_ms))
        at_ms = until_ms
    last = draw(st.sampled_from(["ended", "queued", "running"]))
    return [*found, (last, at_ms, None)]


@st.composite
def books(draw: st.DrawFn) -> Given:
    """A few workloads with everything that metrics look at."""
    tables: Given = {
        name: []
        for name in (
            "workload",
            "span",
            "holding",
            "eviction",
            "reservation",
            "queue_span",
            "attempt",
            "member_wait",
        )
    }
    for uid in "abcdefghij"[: draw(st.integers(1, 10))]:
        one = {"workload_uid": uid}
        tables["workload"].append({
            **one,
            "team": draw(st.sampled_from(TEAMS)),
            "queue": draw(st.sampled_from(["red", "blue"])),
            "service_class": draw(st.sampled_from(CLASSES)),
            "requested_micro_gpus": draw(MICRO),
        })  # fmt: skip
        tables["span"] += [
            {**one, "state": state, "start_ms": start, "end_ms": end} for state, start, end in draw(courses())
        ]
        for start, end in draw(st.lists(stretches(), max_size=2)):
            held = {"bound_ms": start, "released_ms": end, "micro_gpus": draw(MICRO)}
            tables["holding"].append({**one, **held, "node": draw(st.sampled_from(["n1", "n2"]))})
            tables["reservation"].append({**one, "start_ms": start, "end_ms": end})
        for number, (start, end) in enumerate(
            sorted(draw(st.lists(stretches(), max_size=2)), key=lambda stretch: stretch[0]), 1
        ):
            tables["attempt"].append({**one, "number": number, "start_ms": start, "end_ms": end})
            wait = {"pod_uid": f"{uid}-{number}", "micro_gpus": draw(MICRO)}
            tables["member_wait"].append({**one, **wait, "start_ms": start, "end_ms": end})
        for at_ms in draw(st.lists(INSTANTS, max_size=2)):
            missed, preempted = draw(st.integers(0, 2)), draw(st.booleans())
            tables["eviction"].append({**one, "at_ms": at_ms, "missed": missed, "preempted": preempted})
    start, end = draw(stretches())
    tables["queue_span"].append({"queue": "red", "start_ms": start, "end_ms": end})
    nodes = [(f"n{place}", *draw(stretches()), draw(st.booleans())) for place in (1, 2)]
    tables["node_span"] = [
        {"node": node, "start_ms": start, "end_ms": end, "schedulable": schedulable}
        for node, start, end, schedulable in nodes
    ]
    return tables


def known_before(tables: Given, as_of_ms: int) -> Given:
    """The books as they stood at that instant: nothing that begins then or later, no end from then on."""
    begins = {"holding": "bound_ms", "eviction": "at_ms"}
    told = {
        table: [
            {
                name: None if name in {"end_ms", "released_ms"} and (value or 0) >= as_of_ms else value
                for name, value in row.items()
            }
            for row in rows
            if table == "workload" or row[begins.get(table, "start_ms")] < as_of_ms
        ]
        for table, rows in tables.items()
    }
    submitted = {row["workload_uid"] for row in told["span"]}
    return {
        table: [row for row in rows if row.get("workload_uid") in {None, *submitted}]
        for table, rows in told.items()
    }


def of_submitted(tables: Given) -> Given:
    """Without what a workload held before it was submitted, which cannot be."""
    first: dict[str, int] = {}
    for row in tables["span"]:
        first[row["workload_uid"]] = min(row["start_ms"], first.get(row["workload_uid"], row["start_ms"]))
    instant = {"holding": "bound_ms", "eviction": "at_ms"}
    instant |= dict.fromkeys(("reservation", "attempt", "member_wait"), "start_ms")
    return {
        table: [
            row for row in rows if table not in instant or row[instant[table]] >= first[row["workload_uid"]]
        ]
        for table, rows in tables.items()
    }


@dataclass(frozen=True)
class Asked:
    """A store of which every metric is asked; metrics with the same query read its rows once."""

    read: Read[Sequence[Row]]

    @classmethod
    @contextmanager
    def of(cls, tables: Given) -> Iterator["Asked"]:
        with store_of(tables) as store:
            yield cls(read_once(store.rows))

    def said(self, name: str, as_of_ms: int, by: tuple[str, ...] | None = None) -> list[Sample]:
        metric = REGISTRY[name]
        window = Window(start_ms=max(as_of_ms - 40, 0), end_ms=as_of_ms)
        ask = Ask(window=window, by=metric.labels if by is None else by)
        return evaluate(metric, self.read(metric.sql, parameters(metric, ask)), ask)


@given(books().map(of_submitted), st.randoms())
@pytest.mark.timeout(600)
@law(40, few=2, phases=WITHOUT_SHRINKING)
def test_what_happens_later_changes_no_answer(tables: Given, choice: Random) -> None:
    # Asked for an instant at which something happens: that is where < and <= differ.
    as_of_ms = choice.choice([row["start_ms"] for row in tables["span"]])
    with Asked.of(tables) as later, Asked.of(known_before(tables, as_of_ms)) as then:
        for name in REGISTRY:
            assert later.said(name, as_of_ms) == then.said(name, as_of_ms), name


@given(books(), INSTANTS, st.permutations(TEAMS))
@law(20, few=3, phases=WITHOUT_SHRINKING)
def test_teams_that_swap_names_swap_figures(tables: Given, as_of_ms: int, names: list[str]) -> None:
    renamed = dict(zip(TEAMS, names, strict=True))
    workloads = [{**row, "team": renamed[row["team"]]} for row in tables["workload"]]
    with Asked.of(tables) as before, Asked.of({**tables, "workload": workloads}) as after:
        for name, metric in REGISTRY.items():
            if "team" in metric.dimensions:
                old, new = (asked.said(name, as_of_ms, ("team",)) for asked in (before, after))
                swapped = [_with_team(sample, renamed) for sample in old]
                assert sorted(swapped, key=_labels) == sorted(new, key=_labels), name


def _with_team(sample: Sample, renamed: dict[str, str]) -> Sample:
    team = sample.labels.get("team")
    return replace(sample, labels={**sample.labels, "team": renamed[team]}) if team else sample


def _labels(sample: Sample) -> list[tuple[str, str]]:
    return sorted(sample.labels.items())


SUMMED = (
    "cancelled_while_waiting_workloads",
    "evictions_total",
    "first_placed_workloads",
    "held_gpus",
    "member_wait_gpu_hours",
    "past_target_workloads",
    "phantom_reservation_gpus",
    "preemptions_total",
    "protection_broken_preemptions",
    "queue_depth_gpus",
    "queue_depth_workloads",
    "reserved_gpus",
    "tier_rule_broken_preemptions",
)


@given(books(), INSTANTS)
@law(20, phases=WITHOUT_SHRINKING)
def test_parts_sum_to_the_whole(tables: Given, as_of_ms: int) -> None:
    with Asked.of(tables) as asked:
        for name in SUMMED:
            whole = asked.said(name, as_of_ms, ())[0].value or 0
            for label in ("service_class", "team", "queue"):
                parts = asked.said(name, as_of_ms, (label,))
                assert sum(part.value or 0 for part in parts) == pytest.approx(whole), (name, label)


@given(books(), INSTANTS)
@law(20, phases=WITHOUT_SHRINKING)
def test_the_index_of_a_queue_is_the_greatest_of_its_classes(tables: Given, as_of_ms: int) -> None:
    with Asked.of(tables) as asked:
        by_queue = asked.said("starvation_index_seconds", as_of_ms, ("queue",))
        both = asked.said("starvation_index_seconds", as_of_ms, ("queue", "service_class"))
        for sample in by_queue:
            parts = [
                each.value or 0 for each in both if each.labels.get("queue") == sample.labels.get("queue")
            ]
            assert sample.value == max(parts, default=None) or sample.value is None
