"""
Counts per minute of 16 virtual clusters, through `import states`, against the answers of their README.

`full_while_waiting` and quantiles are the reference's, whose ratio is rounded to three decimals: none of
the minutes lies so near to 95 % that it matters.
"""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from api.answers import Question
from collector.imports.state_table import StateMapping, state_mapping_of
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, parse_duration, parse_instant
from service.answers import Answers
from service.state_imports import StateSummary, import_states, state_source
from store.embedded import Store
from tests.traces.taking_in import reference, trace

pytestmark = [pytest.mark.recordings, pytest.mark.timeout(600)]

FOLDER = "helios-earth-2020-05"
# As docs/imports.md has it.
MAPPING: StateMapping = state_mapping_of(
    {
        "columns": {
            "at": "time", "queue": "vc", "running_jobs": "running_gpujob_num",
            "waiting_jobs": "pending_gpujob_num", "jobs": "total_gpujob_num", "held_gpus": "running_gpu_num",
            "waiting_gpus": "pending_gpu_num", "idle_gpus": "idle_gpu_num", "total_gpus": "total_gpu_num",
        },
        "step": "1m",
    },
    name="map.yaml",
)  # fmt: skip
JUNE = parse_instant("2020-06-01T00:00:00Z")
# The reference's keys, and where the product says the same: metric, the label that tells which, the unit.
KEYS: dict[str, tuple[str, dict[str, str], float]] = {
    "minutes": ("queue_state_seconds", {"condition": "told"}, 60),
    "minutes_with_queue": ("queue_state_seconds", {"condition": "waiting"}, 60),
    "minutes_idle_and_pending": ("queue_state_seconds", {"condition": "idle_while_waiting"}, 60),
    "minutes_over95pct_with_queue": ("queue_state_seconds", {"condition": "full_while_waiting"}, 60),
    "longest_nonempty_queue_minutes": ("queue_state_seconds", {"condition": "longest_waiting"}, 60),
    "mean_queue_depth": ("queue_state_mean_depth_workloads", {}, 1),
    "p50_queue_depth": ("queue_state_depth_workloads", {"quantile": "0.5"}, 1),
    "p99_queue_depth": ("queue_state_depth_workloads", {"quantile": "0.99"}, 1),
    "max_queue_depth": ("queue_state_depth_workloads", {"quantile": "1"}, 1),
    "max_pending_gpus": ("queue_state_depth_gpus", {"quantile": "1"}, 1),
    "gpu_hours_used": ("queue_state_gpu_hours", {"condition": "held"}, 1),
    "gpu_hours_capacity": ("queue_state_gpu_hours", {"condition": "total"}, 1),
    "held_ratio": ("queue_state_held_ratio", {}, 1),
    "idle_gpu_hours_while_pending": ("queue_state_gpu_hours", {"condition": "idle_while_waiting"}, 1),
}


def taken_in(path: Path, store: Store) -> StateSummary:
    return import_states(state_source(path, MAPPING), store, MAPPING, cluster="earth", now_ms=JUNE)


def said(store: Store, key: str, *by: str) -> dict[str, float]:
    """What the product says for a key of the reference, by queue."""
    metric, which, unit = KEYS[key]
    answers = Answers(store=store, tenancy=Tenancy(), policy=Policy(), clock=FixedClock(JUNE))
    answer = answers.metric(metric, Question(as_of_ms=JUNE, window=parse_duration("31d"), by=by))
    return {
        row.labels.get("queue", ""): round(row.value / unit, 6)
        for row in answer.rows
        if row.value is not None and which.items() <= row.labels.items() and not row.lower_bound
    }


def check(store: Store, *queues: str) -> None:
    answers = reference(FOLDER)
    of_queues: dict[str, dict[str, Any]] = answers["by_vc"]
    for key in KEYS.keys() - {"held_ratio"}:
        # The reference says nothing where nobody waited: no hour, and no stretch.
        found = answers[key] if key in answers else {name: told[key] for name, told in of_queues.items()}
        expected = {name: found.get(name) or 0.0 for name in of_queues if not queues or name in queues}
        assert expected == said(store, key, "queue"), key


def test_a_virtual_cluster_has_its_queue_depth_and_its_idle_gpus_while_jobs_wait(tmp_path: Path) -> None:
    # The one that waited longest without a break.
    frame = pl.scan_parquet(trace(f"{FOLDER}/vc_sequence.parquet")).filter(pl.col("vc") == "vcpDC").collect()
    frame.write_parquet(tmp_path / "states.parquet")
    store = Store.open(None)
    summary = taken_in(tmp_path / "states.parquet", store)
    assert (summary.lines, summary.clusters["earth"].new, summary.aside) == (44_640, 44_640, {})
    assert summary.closes
    check(store, "vcpDC")


@pytest.mark.long
def test_all_virtual_clusters_have_theirs_and_so_has_the_cluster() -> None:
    store = Store.open(None)
    summary = taken_in(trace(f"{FOLDER}/vc_sequence.parquet"), store)
    assert (summary.lines, summary.clusters["earth"].new, summary.aside) == (714_240, 714_240, {})
    assert summary.closes
    check(store)
    # `mean_of_minute_ratio` is held over all, for the number of GPUs never changed.
    totals = reference(FOLDER)["cluster_total"]
    assert said(store, "gpu_hours_used") == {"": totals["gpu_hours_used"]}
    assert said(store, "gpu_hours_capacity") == {"": totals["gpu_hours_capacity"]}
    assert said(store, "max_queue_depth") == {"": totals["max_pending_jobs"]}
    assert said(store, "p99_queue_depth") == {"": totals["p99_pending_jobs"]}
    assert said(store, "max_pending_gpus") == {"": totals["max_pending_gpus"]}
    assert said(store, "held_ratio") == {"": totals["mean_of_minute_ratio"]}
