"""
Cases drawn from public bug reports: what is held, reserved and waits, through the metrics.

The adapters write the cases' rows as objects of the API and rename keys; the figures come from the
collector, the lifecycle and the metrics.
"""

from analytics.metrics import REGISTRY
from analytics.reservations import is_phantom
from analytics.waiting import longest
from domain.metric import Row
from domain.policy import Policy
from domain.window import parse_instant
from store.embedded import Store
from tests.cases.replay import (
    CREATED,
    Json,
    asking,
    case,
    check,
    queued_for,
    replay,
    truths,
    value,
    values,
    written,
)

NOON = "2026-05-04T12:00:00Z"


def rows(store: Store, metric: str) -> list[Row]:
    """A metric's rows for the day before noon."""
    as_of_ms = parse_instant(NOON)
    return list(
        store.rows(REGISTRY[metric].sql, {"as_of_ms": as_of_ms, "window_start_ms": as_of_ms - 86_400_000})
    )


def g06_pod(pod: Json) -> Json:
    deleted = {name: pod[name] for name in ("deletionTimestamp",) if name in pod}
    status = {"phase": pod["phase"], "reason": pod.get("reason")}
    spec = {"nodeName": pod["node"], **asking(pod["gpu"])}
    return written("Pod", pod["name"], metadata=deleted, spec=spec, status=status)


def test_g06_finished_pods_that_are_still_listed_hold_nothing() -> None:
    given, expected = case("G06-finished-pods-still-listed")
    store = replay([("ADDED", g06_pod(pod), "2026-05-04T10:00:00Z") for pod in given["data"]["pods"]])
    by_node = values(store, "held_gpus", NOON, by="node")
    answer = {
        "allocated_gpus": value(store, "held_gpus", NOON),
        "allocated_by_node": {node: gpus for node, gpus in by_node.items() if gpus},
        "queued_gpus": value(store, "queue_depth_gpus", NOON),
    }
    check(answer, expected)


def g09_readings(one: Json) -> list[tuple[str, Json, str]]:
    """The Workload, a pod of it that was deleted when the last one ended, and those that it has."""
    usage = {"flavors": {"nvidia.com/gpu": "f"}, "resourceUsage": {"nvidia.com/gpu": one["gpus"]}}
    admission = {"podSetAssignments": [usage]} if one["admission"] else None
    status = {"conditions": truths(one["conditions"], CREATED), "admission": admission}
    workload = written("Workload", one["name"], spec=queued_for(one["gpus"]), status=status)
    of = {"annotations": {"kueue.x-k8s.io/workload": one["name"]}}
    spec = {"nodeName": "n1", **asking(one["gpus"])}
    pods = [written("Pod", f"p-{one['name']}", metadata=of, spec=spec, status=pod)
            for pod in one["pods"] or [{}] * ("last_pod_end" in one)]  # fmt: skip
    read = [("ADDED", each, CREATED) for each in (workload, *pods)]
    return read + [("DELETED", pod, one["last_pod_end"]) for pod in pods if "last_pod_end" in one]


def test_g09_a_reservation_without_pods_is_a_finding_and_holds_nothing() -> None:
    given, expected = case("G09-reservation-without-pods")
    store = replay([read for one in given["data"]["workloads"] for read in g09_readings(one)])
    phantoms = [row for row in rows(store, "phantom_reservation_gpus") if is_phantom(row, Policy())]
    seconds = value(store, "phantom_reservation_gpu_seconds", NOON)
    answer = {
        "reserved_gpus": value(store, "reserved_gpus", NOON),
        "held_by_pods_gpus": value(store, "held_gpus", NOON),
        "phantom_gpus": value(store, "phantom_reservation_gpus", NOON),
        "phantom_gpu_hours": seconds and seconds / 3600,
        "phantom_workloads": [row["workload_uid"] for row in phantoms],
    }
    check(answer, expected)


def w05_readings(job: Json) -> list[tuple[str, Json, str]]:
    """A job is a pod: bound when it started, deleted when it was cancelled."""
    bound = {"conditions": truths({"PodScheduled": "True"}, job["started"])} if "started" in job else {}
    pod = written("Pod", job["id"], created=job["submitted"], spec=asking(1), status=bound)
    shown = ("ADDED", pod, str(job.get("started", job["submitted"])))
    return [shown, ("DELETED", pod, job["deleted"])] if "deleted" in job else [shown]


def test_w05_jobs_that_never_started_are_not_dropped() -> None:
    given, expected = case("W05-never-started-jobs-not-dropped")
    store = replay([read for job in given["data"]["jobs"] for read in w05_readings(job)])
    gone = [row for row in rows(store, "cancelled_while_waiting_workloads") if row["value"]]
    all_waits = {row["workload_uid"]: row for row in rows(store, "queue_wait_seconds")}
    lost = {uid: int(str(all_waits[uid]["exit_ms"])) // 1000 for row in gone for uid in [row["workload_uid"]]}
    waits = [row for uid, row in all_waits.items() if uid not in lost]
    answer = {
        "started_p50_s": value(store, "queue_wait_seconds", NOON, quantile="0.5", estimator="started"),
        "oldest_waiting_s": value(store, "starvation_index_seconds", NOON),
        "oldest_waiting_job": longest(rows(store, "starvation_index_seconds"))["workload_uid"],
        "queue_depth": value(store, "queue_depth_workloads", NOON),
        "cancelled_while_waiting": [{"id": uid, "waited_s": waited} for uid, waited in lost.items()],
        "waits_with_lower_bounds_s": sorted(int(str(row["exit_ms"])) // 1000 for row in waits),
    }
    check(answer, expected)
