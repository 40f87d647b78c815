"""Which workload an object belongs to: in whatever order the objects are heard of."""

from itertools import permutations

import pytest

from analytics.identity import Identity, Known
from domain import objects
from domain.facts import ObjectKind
from tests.lives import kueue_body, pod_body


def owner(kind: str, uid: str) -> objects.Owner:
    return objects.Owner(api_group="", kind=kind, name=uid, uid=uid)


def known(uid: str, kind: ObjectKind, body: objects.Body, *, created_ms: int = 0, name: str = "") -> Known:
    return Known(uid=uid, kind=kind, namespace="red", name=name or uid, created_ms=created_ms, body=body)


def pod(uid: str, **more: object) -> Known:
    return known(uid, ObjectKind.POD, pod_body(**more), created_ms=90)  # type: ignore[arg-type]


def job(uid: str, above: objects.Owner | None = None) -> Known:
    body = objects.Job(
        owner=above, labels={}, suspend=False, parallelism=1, completions=1,
        gpu_requests_per_pod={}, priority_class="", queue="",
    )  # fmt: skip
    return known(uid, ObjectKind.JOB, body)


def workload(uid: str, *owners: str, created_ms: int = 10, **more: object) -> Known:
    body = kueue_body(owners=tuple(owner("Job", o) for o in owners), **more)  # type: ignore[arg-type]
    return known(uid, ObjectKind.WORKLOAD, body, created_ms=created_ms)


def group(uid: str, above: objects.Owner | None, created_ms: int = 10) -> Known:
    body = objects.PodGroup(owner=above, labels={}, min_member=1, queue="q", priority_class="")
    return known(uid, ObjectKind.VOLCANO_POD_GROUP, body, created_ms=created_ms)


def vcjob(uid: str) -> Known:
    body = objects.VolcanoJob(
        owner=None, labels={}, min_available=1, replicas=1, gpu_requests={}, queue="q", priority_class=""
    )
    return known(uid, ObjectKind.VOLCANO_JOB, body)


CASES: dict[str, tuple[list[Known], dict[str, str | None]]] = {
    "a pod of its own": ([pod("p")], {"p": "p"}),
    "a pod of a Deployment or StatefulSet": ([pod("p", owner=owner("StatefulSet", "s"))], {"p": "p"}),
    "pods of a Job": (
        [job("j"), pod("p", owner=owner("Job", "j"))],
        {"j": "j", "p": "j"},
    ),
    "a Job of a CronJob": ([job("j", owner("CronJob", "c")), pod("p", owner=owner("Job", "j"))], {"p": "j"}),
    "a Job of a JobSet of a TrainJob that we know by reference only": (
        [job("j", owner("JobSet", "s")), pod("p", owner=owner("Job", "j"))],
        {"j": "s", "p": "s"},
    ),
    "a Kueue Workload of a Job": (
        [workload("w", "j"), job("j"), pod("p", owner=owner("Job", "j"))],
        {"w": "w", "j": "w", "p": "w"},
    ),
    "a Kueue Workload of a JobSet": (
        [workload("w", "s"), job("j", owner("JobSet", "s")), pod("p", owner=owner("Job", "j"))],
        {"w": "w", "j": "w", "p": "w"},
    ),
    "a Workload made anew for the same Job": (
        [workload("w2", "j", created_ms=50), workload("w1", "j", created_ms=10), job("j")],
        {"w1": "w1", "w2": "w1", "j": "w1"},
    ),
    "a pod group of Kueue": (
        [workload("w", "p", "o"), pod("p", kueue_pod_group="w"), pod("o", kueue_pod_group="w")],
        {"w": "w", "p": "w", "o": "w"},
    ),
    "elastic slices": (
        [
            workload("a", "j", created_ms=10),
            workload("b", "j", created_ms=20, slice_of="red/a"),
            workload("c", "j", created_ms=30, slice_of="red/b"),
        ],
        {"a": "a", "b": "a", "c": "a"},
    ),
    "a Volcano Job": (
        [vcjob("v"), group("g", owner("Job", "v")), pod("p", owner=owner("Job", "v"), volcano_pod_group="g")],
        {"v": "g", "g": "g", "p": "g"},
    ),
    "a Volcano Job that was restarted with a new PodGroup": (
        [vcjob("v"), group("g1", owner("Job", "v"), 10), group("g2", owner("Job", "v"), 60)],
        {"v": "g1", "g1": "g1", "g2": "g1"},
    ),
    "a Volcano Job under Kueue": (
        [workload("w", "v"), vcjob("v"), group("g", owner("Job", "v"))],
        {"w": "w", "v": "w", "g": "w"},
    ),
    "a queue is no workload": (
        [
            known(
                "q",
                ObjectKind.LOCAL_QUEUE,
                objects.LocalQueue(cluster_queue="c", stop_policy="", weight_milli=1000),
            )
        ],
        {"q": None},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_objects_belong_to_their_workload_in_any_order_of_arrival(name: str) -> None:
    heard, expected = CASES[name]
    for order in permutations(heard):
        identity = Identity()
        for one in order:
            identity.add(one)
        assert {uid: identity.workload_of(uid) for uid in expected} == expected


def test_a_name_means_the_object_that_was_there_when_it_was_written() -> None:
    identity = Identity()
    for uid, created_ms in (("old", 10), ("new", 200)):
        identity.add(known(uid, ObjectKind.WORKLOAD, kueue_body(), created_ms=created_ms, name="w"))
    identity.add(pod("p", kueue_workload="w"))
    assert identity.workload_of("p") == "old"
