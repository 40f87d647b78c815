"""
Cases drawn from public bug reports: what is held, reserved and waits, through the metrics.

The adapters rename keys and values, parse times, convert units and round; the figures come from
the metrics' own SQL and sums.
"""

from typing import Any

from analytics.metrics import REGISTRY
from analytics.reservations import is_phantom
from analytics.waiting import longest
from domain.policy import Policy
from domain.window import parse_instant
from store.embedded import Store
from tests.cases.replay import Json, case
from tests.golden.cases import store_of, values

NOON = "2026-05-04T12:00:00Z"
Rows = list[dict[str, Any]]


def rows(store: Store, metric: str) -> Rows:
    """A metric's rows for the day before noon."""
    as_of_ms = parse_instant(NOON)
    return list(
        store.rows(REGISTRY[metric].sql, {"as_of_ms": as_of_ms, "window_start_ms": as_of_ms - 86_400_000})
    )


def check(answer: Json, expected: Json) -> None:
    """Every key asked for is equal; none has a value that is known to be wrong."""
    for key, wrong in expected.pop("must_not", {}).items():
        assert answer[key] not in wrong
    assert answer == expected


def g06_rows(data: Json) -> dict[str, Rows]:
    spans, holdings = [], []
    for pod in data["pods"]:
        state = {"Succeeded": "ended", "Failed": "ended"}.get(
            pod["phase"], "running" if pod["node"] else "queued"
        )
        spans.append({"workload_uid": pod["name"], "state": state, "start_ms": 1})
        if pod["node"]:
            row = {
                "workload_uid": pod["name"],
                "node": pod["node"],
                "gpus": pod["gpu"],
                "phase": pod["phase"],
            }
            holdings.append({**row, "bound_ms": 1, "released_ms": 2 if state == "ended" else None})
    workloads = [{"workload_uid": pod["name"], "requested_gpus": pod["gpu"]} for pod in data["pods"]]
    return {"workload": workloads, "span": spans, "holding": holdings}


def test_g06_finished_pods_that_are_still_listed_hold_nothing() -> None:
    given, expected = case("G06-finished-pods-still-listed")
    with store_of(g06_rows(given["data"])) as store:
        by_node = values(store, "held_gpus", NOON, by=("node",))
        answer = {
            "allocated_gpus": values(store, "held_gpus", NOON)[()],
            "allocated_by_node": {node: gpus for (node,), gpus in by_node.items() if gpus},
            "queued_gpus": values(store, "queue_depth_gpus", NOON)[()],
        }
    check(answer, expected)


def g09_rows(data: Json) -> dict[str, Rows]:
    reserved, holdings = [], []
    for workload in data["workloads"]:
        uid = {"workload_uid": workload["name"]}
        if workload["admission"]:
            reserved.append({**uid, "gpus": workload["gpus"], "start_ms": 1})
        if "last_pod_end" in workload:
            holdings.append({**uid, "bound_ms": 1, "released_at": workload["last_pod_end"]})
        holdings += [{**uid, "gpus": pod["gpus"], "bound_ms": 1} for pod in workload["pods"]]
    workloads = [{"workload_uid": workload["name"]} for workload in data["workloads"]]
    return {"workload": workloads, "reservation": reserved, "holding": holdings}


def test_g09_a_reservation_without_pods_is_a_finding_and_holds_nothing() -> None:
    given, expected = case("G09-reservation-without-pods")
    with store_of(g09_rows(given["data"])) as store:
        phantoms = [row for row in rows(store, "phantom_reservation_gpus") if is_phantom(row, Policy())]
        answer = {
            "reserved_gpus": values(store, "reserved_gpus", NOON)[()],
            "held_by_pods_gpus": values(store, "held_gpus", NOON)[()],
            "phantom_gpus": values(store, "phantom_reservation_gpus", NOON)[()],
            "phantom_gpu_hours": values(store, "phantom_reservation_gpu_seconds", NOON)[()] / 3600,
            "phantom_workloads": [row["workload_uid"] for row in phantoms],
        }
    check(answer, expected)


def w05_rows(data: Json) -> dict[str, Rows]:
    spans = []
    for job in data["jobs"]:
        uid, after = {"workload_uid": job["id"]}, job.get("started") or job.get("deleted")
        spans.append({**uid, "state": "queued", "start_at": job["submitted"], "end_at": after})
        if after:
            spans.append({**uid, "state": "running" if "started" in job else "ended", "start_at": after})
    return {"span": spans}


def test_w05_jobs_that_never_started_are_not_dropped() -> None:
    given, expected = case("W05-never-started-jobs-not-dropped")
    with store_of(w05_rows(given["data"])) as store:
        gone = [row for row in rows(store, "cancelled_while_waiting_workloads") if row["value"]]
        lost = {row["workload_uid"]: row["waited_ms"] // 1000 for row in gone}
        waits = [row for row in rows(store, "queue_wait_seconds") if row["workload_uid"] not in lost]
        answer = {
            "started_p50_s": values(store, "queue_wait_seconds", NOON)["0.5", "started"],
            "oldest_waiting_s": values(store, "starvation_index_seconds", NOON)[()],
            "oldest_waiting_job": longest(rows(store, "starvation_index_seconds"))["workload_uid"],
            "queue_depth": values(store, "queue_depth_workloads", NOON)[()],
            "cancelled_while_waiting": [{"id": uid, "waited_s": waited} for uid, waited in lost.items()],
            "waits_with_lower_bounds_s": sorted(row["exit_ms"] // 1000 for row in waits),
        }
    check(answer, expected)
