"""What MultiKueue gave to another cluster counts once, whichever clusters are read and in which order."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from api.answers import ListQuestion, Question
from collector.intake import Intake
from collector.translator import find
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, format_instant, parse_instant
from service.answers import Answers
from service.refresh import Refresher
from store.embedded import Store

NINE = parse_instant("2026-05-04T09:00:00Z")
AFTER = NINE + 60 * 60_000
JOB_UID = "kueue.x-k8s.io/job-uid"
ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
Read = tuple[str, float, dict[str, Any]]
TABLES = (
    "workload",
    "span",
    "attempt",
    "holding",
    "run",
    "eviction",
    "member",
    "reservation",
    "workload_copy",
)


def stamp(minute: float) -> str:
    return format_instant(NINE + round(60_000 * minute))


def when(minute: float) -> int:
    return NINE + round(60_000 * minute)


def condition(kind: str, minute: float, *, status: str = "True", reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason or kind, "lastTransitionTime": stamp(minute)}


def workload(
    uid: str,
    minute: float,
    *conditions: dict[str, str],
    version: int = 1,
    name: str = "job-train",
    **more: Any,
) -> dict[str, Any]:
    """A Workload of two pods with four GPUs each."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    metadata = {
        "uid": uid, "name": name, "namespace": "red", "creationTimestamp": stamp(minute),
        "resourceVersion": str(version), "labels": {JOB_UID: "job", **more.get("labels", {})},
    }  # fmt: skip
    status: dict[str, Any] = {"conditions": list(conditions), **more.get("status", {})}
    if any(one["type"] == "QuotaReserved" and one["status"] == "True" for one in conditions):
        assignment = {"name": "main", "count": 2, "flavors": {"nvidia.com/gpu": "a100"}}
        assignment |= {"resourceUsage": {"nvidia.com/gpu": "8"}}
        status["admission"] = {"clusterQueue": "main", "podSetAssignments": [assignment]}
    pod_sets = [{"name": "main", "count": 2, "template": {"spec": {"containers": [container]}}}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata,
        "spec": {"queueName": "lq", "podSets": pod_sets}, "status": status,
    }  # fmt: skip


def pod(uid: str, minute: float, *, owner: str = "remote-job") -> dict[str, Any]:
    """A pod of the remote Job, bound when it is made."""
    began = stamp(minute)
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": owner, "controller": True}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "uid": uid, "name": uid, "namespace": "red", "creationTimestamp": began, "resourceVersion": "1",
            "ownerReferences": [job],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "4"}}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": began}],
            "containerStatuses": [
                {"name": "main", "restartCount": 0, "state": {"running": {"startedAt": began}}}
            ],
        },
    }  # fmt: skip


def node(uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "uid": uid, "name": "n1", "creationTimestamp": stamp(-60), "resourceVersion": "1",
            "labels": {"nvidia.com/gpu.product": "A100"},
        },
        "status": {
            "capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(-60)}],
        },
    }  # fmt: skip


def copy(
    uid: str, minute: float, *conditions: dict[str, str], owner: str = "", **more: Any
) -> dict[str, Any]:
    made = workload(uid, minute, *conditions, labels=ORIGIN, **more)
    if owner:
        job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": owner, "controller": True}
        made["metadata"]["ownerReferences"] = [job]
    return made


def other_pod(uid: str) -> dict[str, Any]:
    """Another pod of the managing cluster: its pods are read too."""
    made = pod(uid, -30)
    made["metadata"]["ownerReferences"] = []
    made["spec"]["containers"][0]["resources"] = {}
    return made


# The manager reserves quota at 5 and dispatches; both workers get a copy; east takes it at 6, and its pods
# are bound at 8. West's copy goes away.
MANAGER: list[Read] = [
    ("hub", -30, other_pod("o")),
    ("hub", 0, workload("w", 0)),
    ("hub", 5, workload("w", 0, condition("QuotaReserved", 5), version=2)),
    (
        "hub", 7,
        workload("w", 0, condition("QuotaReserved", 5), condition("Admitted", 7), version=3,
                 status={"clusterName": "worker-1"}),
    ),
]  # fmt: skip
TAKEN = (condition("QuotaReserved", 6), condition("Admitted", 6))
EAST: list[Read] = [
    ("east", -60, node("n-east")),
    ("east", 5.1, copy("c-east", 5.1)),
    ("east", 6, copy("c-east", 5.1, *TAKEN, version=2, owner="remote-job")),
    ("east", 8, pod("p1", 8)),
    ("east", 8, pod("p2", 8)),
]
WEST: list[Read] = [
    ("west", -60, node("n-west")),
    ("west", -30, other_pod("o-west")),
    ("west", 5.1, copy("c-west", 5.1)),
]
WEST_GONE: Read = ("west", 6.5, copy("c-west", 5.1))


def read(store: Store, *parts: Sequence[Read], gone: Sequence[Read] = (), each: bool = False) -> None:
    """Take in what was read, part by part; lives are cut after each object, or after each part."""
    refresher = Refresher(store=store)
    intakes: dict[str, Intake] = {}
    for part in (*parts, gone):
        for cluster, minute, written in part:
            intake = intakes.setdefault(cluster, Intake(cluster, store, store.known(cluster)))
            translator = find(written["apiVersion"].rpartition("/")[0], written["kind"])
            assert translator is not None
            intake.see(translator, "DELETED" if part is gone else "MODIFIED", written, when(minute))
            if each:
                intake.flush()
                refresher.refresh_cluster(cluster)
        for cluster in dict.fromkeys(cluster for cluster, _, _ in part):
            intakes[cluster].flush()
            refresher.refresh_cluster(cluster)


def answers(store: Store) -> Answers:
    return Answers(store, Tenancy(), Policy(), FixedClock(AFTER))


def said(store: Store, metric: str, minute: float, *by: str, **labels: str) -> dict[str, float | None]:
    asked = Question(as_of_ms=when(minute), window=None, by=by)
    return {
        row.labels.get(by[0], "") if by else "": row.value
        for row in answers(store).metric(metric, asked).rows
        if labels.items() <= row.labels.items()
    }


def books(store: Store) -> dict[str, list[dict[str, object]]]:
    return {name: store.rows(f"select * from {name} order by all") for name in TABLES}  # noqa: S608 (names from here)


def spans(store: Store, uid: str) -> list[tuple[object, ...]]:
    rows = store.rows(
        "select state, start_ms, end_ms from span where workload_uid = $uid order by start_ms", {"uid": uid}
    )
    return [tuple(row.values()) for row in rows]


def test_it_waits_once_and_holds_where_its_pods_are() -> None:
    store = Store.open(None)
    read(store, WEST, EAST, MANAGER, gone=[WEST_GONE])
    listed = answers(store).workloads(ListQuestion()).rows
    [row] = [row for row in listed if row["requested_gpus"]]
    assert (row["cluster"], row["uid"], row["gpu_seconds"]) == ("hub", "w", 52 * 60 * 8)
    told = answers(store).workload("w")
    assert told is not None
    pods = [[pod["uid"] for pod in attempt["pods"]] for attempt in told["attempts"]]
    assert pods == [["p1", "p2"]]
    of_copy = answers(store).workload("c-east")
    assert of_copy is not None
    assert of_copy["gpu_seconds"] == row["gpu_seconds"]
    assert spans(store, "w") == [
        ("queued", when(0), when(5) ),
        ("checking", when(5), when(7)),
        ("placing", when(7), when(8)),
        ("running", when(8), None),
    ]  # fmt: skip
    assert said(store, "submitted_workloads", 20, "cluster") == {"hub": 1}
    assert said(store, "longest_queue_wait_seconds", 20, "cluster") == {"hub": 480}
    held = said(store, "held_gpus", 20, "cluster")
    assert {name: value for name, value in held.items() if value} == {"east": 8}
    assert said(store, "free_gpus", 20, "cluster") == {"east": 0, "west": 8}
    assert said(store, "queue_depth_workloads", 5.5) == {"": 1}
    assert said(store, "queue_depth_gpus", 5.5) == {"": 8}
    assert said(store, "reserved_gpus", 20) == {"": 8}
    assert said(store, "phantom_reservation_gpus", 50) == {"": 0}


@pytest.mark.long
def test_in_whatever_order_the_clusters_are_read_the_books_are_the_same() -> None:
    found = []
    for number, parts in enumerate(permutations((MANAGER, EAST, WEST))):
        store = Store.open(None)
        read(store, *parts, gone=[WEST_GONE], each=number in {1, 4})
        found.append(books(store))
        store.close()
    assert all(one == found[0] for one in found[1:])
    assert [row["of_workload_uid"] for row in found[0]["workload_copy"]] == ["w", "w"]


def test_with_the_manager_alone_its_admission_stands_for_placement() -> None:
    store = Store.open(None)
    read(store, MANAGER)
    attempts = store.rows("select source from attempt where workload_uid = 'w'")
    assert [row["source"] for row in attempts] == ["admission"]
    assert said(store, "longest_queue_wait_seconds", 20) == {"": 420}
    assert said(store, "held_gpus", 20) == {"": 8}
    assert store.rows("select * from workload_copy") == []


def test_with_the_worker_alone_its_copy_is_a_workload() -> None:
    store = Store.open(None)
    read(store, EAST)
    assert said(store, "submitted_workloads", 20, "cluster") == {"east": 1}
    assert said(store, "longest_queue_wait_seconds", 20) == {"": round(60 * 2.9)}
    assert said(store, "held_gpus", 20) == {"": 8}


@pytest.mark.long
def test_a_worker_without_pods_read_leaves_the_admission() -> None:
    store = Store.open(None)
    read(store, MANAGER, [one for one in EAST if one[2]["kind"] == "Workload"])
    assert said(store, "longest_queue_wait_seconds", 20, "cluster") == {"hub": 420}


# East is lost at 18. The manager notices, takes the workload back and dispatches it again.
AGAIN = condition("Evicted", 19, reason="AdmissionCheck")
WITHOUT = (condition("QuotaReserved", 19, status="False", reason="Pending"),
           condition("Admitted", 19, status="False", reason="NoReservation"))  # fmt: skip
BACK: list[Read] = [
    ("hub", 19, workload("w", 0, *WITHOUT, AGAIN, condition("Requeued", 19), version=4)),
    ("hub", 20, workload("w", 0, condition("QuotaReserved", 20), condition("Admitted", 22), version=5,
                         status={"clusterName": "worker-2"})),
]  # fmt: skip
MOVED: list[Read] = [
    ("west", 20, copy("c-west-2", 20)),
    ("west", 21, copy("c-west-2", 20, condition("QuotaReserved", 21), condition("Admitted", 21), version=2,
                      owner="job-west")),
    ("west", 23, pod("p3", 23, owner="job-west")),
    ("west", 23, pod("p4", 23, owner="job-west")),
]  # fmt: skip
LOST: list[Read] = [
    ("east", 18, pod("p1", 8)),
    ("east", 18, pod("p2", 8)),
    ("east", 18, copy("c-east", 5.1, *TAKEN, version=2, owner="remote-job")),
]


@pytest.mark.long
def test_a_process_that_starts_anew_goes_on_where_the_last_one_ended() -> None:
    once, again = Store.open(None), Store.open(None)
    read(once, MANAGER, EAST, BACK[:1])
    for cluster, minute, written in (*MANAGER, *EAST, *BACK[:1]):
        read(again, [(cluster, minute, written)])
    assert books(again) == books(once)


def test_one_that_moves_to_another_worker_waits_again_and_holds_there() -> None:
    store = Store.open(None)
    read(store, MANAGER, EAST, gone=LOST)
    read(store, WEST, BACK, MOVED, gone=[WEST_GONE])
    assert spans(store, "w")[3:] == [
        ("running", when(8), when(18)),
        ("backoff", when(18), when(19)),
        ("queued", when(19), when(20)),
        ("checking", when(20), when(22)),
        ("placing", when(22), when(23)),
        ("running", when(23), None),
    ]
    assert said(store, "evictions_total", 30) == {"": 1}
    held = said(store, "held_gpus", 30, "cluster")
    assert {name: value for name, value in held.items() if value} == {"west": 8}
    assert said(store, "submitted_workloads", 30) == {"": 1}
    assert len(store.rows("select * from attempt where workload_uid = 'w'")) == 2
    told = answers(store).workload("w")
    assert told is not None
    pods = [[pod["uid"] for pod in attempt["pods"]] for attempt in told["attempts"]]
    assert pods == [["p1", "p2"], ["p3", "p4"]]
    rows = store.rows("select cluster, pod_uid from gpu_holding order by pod_uid")
    assert [tuple(row.values()) for row in rows] == [
        ("east", "p1"), ("east", "p2"), ("west", "p3"), ("west", "p4"),
    ]  # fmt: skip


def test_a_preemption_in_the_worker_is_one_and_an_eviction_by_the_manager_is_told_there() -> None:
    store = Store.open(None)
    thrown = condition("Evicted", 18, reason="Preempted")
    by_hub = condition("Evicted", 19, reason="EvictedOnManagerCluster")
    preempted: list[Read] = [
        ("east", 18, copy("c-east", 5.1, *TAKEN, thrown, version=3, owner="remote-job")),
        ("west", 19, copy("c-west", 5.1, by_hub, version=3)),
    ]
    read(store, MANAGER, EAST, WEST)
    for one in preempted:
        read(store, [one])
    assert said(store, "preemptions_total", 20) == {"": 1}
    [row] = [row for row in answers(store).workloads(ListQuestion()).rows if row["requested_gpus"]]
    assert (row["uid"], row["preemptions"], row["evictions"]) == ("w", 1, 0)
    assert said(store, "evictions_total", 20) == {"": 0}
    # Without its original the eviction is the copy's own.
    alone = Store.open(None)
    read(alone, WEST, preempted[1:])
    assert said(alone, "evictions_total", 20) == {"": 1}
