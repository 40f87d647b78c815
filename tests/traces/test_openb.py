"""
The pods of openb through the importer, against every answer that was computed for them independently.

Time-weighted means of its reference are left out: the product has no such figure of a queue.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from collector.imports.mapping import mapping_of
from domain.window import MS_PER_SECOND, parse_instant
from service.job_imports import table_source
from store.embedded import Store
from tests.traces.taking_in import reference, said, started_waits, taken_in, trace

pytestmark = [pytest.mark.recordings, pytest.mark.long, pytest.mark.timeout(1200)]

ORIGIN = "2020-01-01T00:00:00Z"
FOLDER = "alibaba-openb-2023"
STATES = {"Succeeded": "succeeded", "Failed": "failed", "Running": "unknown", "Pending": "cancelled"}

PODS = """
-- One row per QoS class and outcome: pods, those that were never placed, and GPU-hours.
select
    workload.priority_class as qos,
    workload.outcome,
    count(*) as n,
    count(*) - count(workload.first_placed_ms) as unplaced,
    coalesce(sum(held.amount), 0) / 3.6e12 as hours
from workload
left join (
    select cluster, workload_uid, sum(micro_gpus::hugeint * (released_ms - bound_ms))::double as amount
    from holding group by cluster, workload_uid
) as held on workload.cluster = held.cluster and workload.workload_uid = held.workload_uid
group by workload.priority_class, workload.outcome
"""
WAITS = """
-- One row per QoS class, and one for all: waits in seconds, to the end of those that were never placed.
select
    coalesce(priority_class, 'all') as qos,
    count(*) as n,
    quantile_cont(waited, 0.5) / 1000 as p50_cont,
    quantile_cont(waited, 0.9) / 1000 as p90_cont,
    quantile_cont(waited, 0.99) / 1000 as p99_cont,
    max(waited) / 1000 as max,
    max(case when first_placed_ms is null then waited end) / 1000 as never_placed
from (
    select *, coalesce(first_placed_ms, ended_ms) - submitted_ms as waited from workload
) as aged
where first_placed_ms is not null or $all
group by grouping sets ((priority_class), ())
"""
DEPTH = """
-- One row: how many workloads, with GPUs or without, wait just before $at_ms.
select count(*) as n from span
where state in ('queued', 'checking', 'placing') and start_ms < $at_ms and coalesce(end_ms >= $at_ms, true)
"""


def same(ours: Mapping[str, Any], theirs: Mapping[str, float]) -> None:
    """The figures of waits that both have."""
    for figure in ("n", "p50_cont", "p90_cont", "p99_cont", "max"):
        assert round(float(ours[figure]), 2) == round(theirs[figure], 2), (ours, figure)


def test_openb_has_every_answer_of_its_reference() -> None:
    store, answers = Store.open(None), reference(FOLDER)
    source = table_source(
        trace(f"{FOLDER}/pods_default.parquet"),
        mapping_of(
            {
                "columns": {
                    "id": "name", "submit": "creation_time", "start": "scheduled_time",
                    "end": "deletion_time", "state": "pod_phase", "gpus": "num_gpu", "share": "gpu_milli",
                    "priority_class": "qos",
                },
                "states": STATES,
                "time": {"origin": ORIGIN},
            },
            name="map.yaml",
        ),
    )  # fmt: skip
    summary = taken_in(source, store, hours=True)
    assert (summary.lines, summary.aside, summary.closes) == (8152, {}, True)
    held = said(store, "held_gpu_hours", "priority_class")
    by_qos = answers["by_qos"]
    assert {qos: round(value, 3) for qos, value in held.items()} == {
        qos: round(value, 3) for qos, value in by_qos["gpu_hours"].items()
    }
    assert round(sum(held.values()), 3) == round(answers["all_pods"]["gpu_hours"]["all"], 3)
    started_waits(store, "priority_class", by_qos["wait_seconds_scheduled_pods"])

    pods: list[dict[str, Any]] = store.rows(PODS)
    phases = {(row["qos"], row["pod_phase"]): row["n"] for row in answers["pods_by_qos_phase"]}
    assert {(row["qos"], row["outcome"]): row["n"] for row in pods} == {
        (qos, STATES[phase]): n for (qos, phase), n in phases.items()
    }
    for qos, hours in by_qos["gpu_hours_failed"].items():
        ours = sum(row["hours"] for row in pods if (row["qos"], row["outcome"]) == (qos, "failed"))
        assert round(ours, 4) == round(hours, 4), qos
        assert round(ours / held[qos], 5) == round(by_qos["failed_share_of_gpu_hours"][qos], 5), qos
    unplaced: dict[str, int] = {}
    for row in pods:
        unplaced[row["qos"]] = unplaced.get(row["qos"], 0) + row["unplaced"]
    assert {qos: n for qos, n in unplaced.items() if n} == by_qos["never_scheduled_pods"]
    assert sum(unplaced.values()) == answers["all_pods"]["never_scheduled_pods"]["all"]

    waits: dict[object, dict[str, Any]] = {}
    for everybody, key in (
        (False, "wait_seconds_scheduled_pods"),
        (True, "wait_seconds_including_never_scheduled_as_deletion_minus_creation"),
    ):
        theirs = by_qos[key] | answers["all_pods"][key]
        waits = {row["qos"]: row for row in store.rows(WAITS, {"all": everybody})}
        assert waits.keys() == theirs.keys()
        for qos, row in waits.items():
            same(row, theirs[qos])
    longest = answers["starvation"]
    assert waits["all"]["never_placed"] == longest["max_age_never_scheduled_s"]

    depth, taken = answers["queue_depth_all"], answers["gpus_allocated"]
    [deepest] = store.rows(DEPTH, {"at_ms": at_ms(depth["first_time_of_max"]) + 1})
    assert deepest["n"] == depth["max_depth"]
    most = said(store, "held_gpus", as_of_ms=at_ms(taken["first_time_of_max"]) + 1)
    assert round(most[""], 2) == taken["max_depth"]


def at_ms(seconds: float) -> int:
    return parse_instant(ORIGIN) + round(seconds * MS_PER_SECOND)


def test_its_nodes_are_those_of_its_reference() -> None:
    nodes = pl.read_parquet(trace(f"{FOLDER}/nodes.parquet"))
    counted = {
        model or "(none)": (count, gpus)
        for model, count, gpus in nodes.group_by("model").agg(pl.len(), pl.col("gpu").sum()).iter_rows()
    }
    assert counted == {
        row["model"]: (row["nodes"], row["gpus"]) for row in reference(FOLDER)["nodes_by_model"]
    }
