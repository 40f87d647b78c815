"""Which workload objects of later schedulers and operators belong to, in whatever order they are heard of."""

from itertools import permutations

import pytest

from analytics.identity import JOB_KINDS, Identity, Known
from domain import objects
from domain.claims import PodClaim, ResourceClaim
from domain.facts import ObjectKind
from tests.lives import kueue_body, pod_body


def owner(kind: str, uid: str) -> objects.Owner:
    return objects.Owner(api_group="", kind=kind, name=uid, uid=uid)


def known(uid: str, kind: ObjectKind, body: objects.Body, *, created_ms: int = 10) -> Known:
    return Known(uid=uid, kind=kind, namespace="red", name=uid, created_ms=created_ms, body=body)


def pod(uid: str, *, created_ms: int = 90, **more: object) -> Known:
    return known(uid, ObjectKind.POD, pod_body(**more), created_ms=created_ms)  # type: ignore[arg-type]


def job(uid: str, above: objects.Owner | None = None) -> Known:
    body = objects.Job(
        owner=above, labels={}, suspend=False, parallelism=1, completions=1, gpu_requests_per_pod={},
        priority_class="", queue="",
    )  # fmt: skip
    return known(uid, ObjectKind.JOB, body)


def job_object(uid: str, kind: ObjectKind, above: objects.Owner | None = None) -> Known:
    body = objects.JobObject(owner=above, labels={}, suspend=False, pod_sets=(), priority_class="", queue="")
    return known(uid, kind, body)


def group(uid: str, kind: ObjectKind, above: objects.Owner | None = None, *, created_ms: int = 20) -> Known:
    body = objects.PodGroup(owner=above, labels={}, min_member=1, queue="", priority_class="")
    return known(uid, kind, body, created_ms=created_ms)


def workload(uid: str, above: objects.Owner, **more: object) -> Known:
    body = kueue_body(owners=(above,), **more)  # type: ignore[arg-type]
    return known(uid, ObjectKind.WORKLOAD, body, created_ms=30)


def claim(uid: str, pod_uid: str = "") -> Known:
    body = ResourceClaim(pod_uid=pod_uid, extended_resource=False, requests=(), devices=())
    return known(uid, ObjectKind.RESOURCE_CLAIM, body)


def task(app: str, *, placeholder: bool = False) -> objects.YuniKornTask:
    return objects.YuniKornTask(app=app, task_group="g", placeholder=placeholder)


RAY = [
    job_object("rj", ObjectKind.RAY_JOB),
    job_object("rc", ObjectKind.RAY_CLUSTER, owner("RayJob", "rj")),
    pod("p", owner=owner("RayCluster", "rc")),
]
TRAIN = [
    job_object("t", ObjectKind.TRAIN_JOB),
    job_object("s", ObjectKind.JOB_SET, owner("TrainJob", "t")),
    job("j", owner("JobSet", "s")),
    pod("p", owner=owner("Job", "j")),
]
SUBMITTER = [job("submit", owner("RayJob", "rj")), pod("ps", owner=owner("Job", "submit"))]
LABELS_OF_RAY = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "rj"}

CASES: dict[str, tuple[list[Known], dict[str, str | None]]] = {
    "a RayJob and its RayCluster": (RAY, {"rj": "rj", "rc": "rj", "p": "rj"}),
    "the submitter of a RayJob": ([RAY[0], *SUBMITTER], {"submit": "rj", "ps": "rj"}),
    "a second try of a RayJob": (
        [*RAY, job_object("rc2", ObjectKind.RAY_CLUSTER, owner("RayJob", "rj"))],
        {"rc2": "rj"},
    ),
    "a RayCluster that nobody saw": (
        [RAY[0], pod("p", owner=owner("RayCluster", "rc"), labels=LABELS_OF_RAY)],
        {"p": "rj"},
    ),
    "a RayCluster of a RayService": (
        [job_object("rc", ObjectKind.RAY_CLUSTER, owner("RayService", "rs")), RAY[2]],
        {"rc": "rc", "p": "rc"},
    ),
    "a TrainJob, its JobSet and Jobs": (TRAIN, {"t": "t", "s": "t", "j": "t", "p": "t"}),
    "a Job of a JobSet that nobody saw": (
        [*TRAIN[:2], pod("p", owner=owner("Job", "j"), labels={"jobset.sigs.k8s.io/jobset-uid": "s"})],
        {"p": "t"},
    ),
    "an AppWrapper around a PyTorchJob": (
        [
            job_object("a", ObjectKind.APP_WRAPPER),
            job_object("pt", ObjectKind.PYTORCH_JOB, owner("AppWrapper", "a")),
            pod("p", owner=owner("PyTorchJob", "pt")),
        ],
        {"a": "a", "pt": "a", "p": "a"},
    ),
    "a launcher of an MPIJob": (
        [
            job_object("m", ObjectKind.MPI_JOB),
            job("l", owner("MPIJob", "m")),
            pod("pl", owner=owner("Job", "l")),
            pod("pw", owner=owner("MPIJob", "m")),
        ],
        {"pl": "m", "pw": "m"},
    ),
    "Kueue queues the RayJob": (
        [*RAY, workload("w", owner("RayJob", "rj"))],
        {"rj": "w", "rc": "w", "p": "w"},
    ),
    "Kueue queues what is below the highest job": (
        [*RAY, workload("w", owner("RayCluster", "rc"))],
        {"rj": "w", "rc": "w", "p": "w", "w": "w"},
    ),
    "a gang of KAI of a job": (
        [*RAY, group("g", ObjectKind.KAI_POD_GROUP, owner("RayJob", "rj"))],
        {"rj": "g", "rc": "g", "p": "g", "g": "g"},
    ),
    "a gang of KAI of a pod of its own": (
        [group("g", ObjectKind.KAI_POD_GROUP, owner("Pod", "p")), pod("p", kai_pod_group="g")],
        {"g": "g", "p": "g"},
    ),
    "gangs of KAI for the replicas of one owner": (
        [
            group("g0", ObjectKind.KAI_POD_GROUP, owner("LeaderWorkerSet", "l")),
            group("g1", ObjectKind.KAI_POD_GROUP, owner("LeaderWorkerSet", "l")),
            pod("p", owner=owner("StatefulSet", "x"), kai_pod_group="g1"),
        ],
        {"g0": "g0", "g1": "g1", "p": "g1"},
    ),
    "a gang of kube-scheduler": (
        [group("g", ObjectKind.POD_GROUP), pod("p", scheduling_group="g"), pod("o", scheduling_group="g")],
        {"p": "g", "o": "g"},
    ),
    "Kueue comes before any gang": (
        [
            job("j"),
            workload("w", owner("Job", "j")),
            group("g", ObjectKind.PLUGIN_POD_GROUP),
            pod("p", owner=owner("Job", "j"), plugin_pod_group="g"),
        ],
        {"p": "w", "j": "w"},
    ),
    "Volcano's gang comes before KAI's": (
        [
            job("j"),
            group("k", ObjectKind.KAI_POD_GROUP, owner("Job", "j"), created_ms=15),
            group("v", ObjectKind.VOLCANO_POD_GROUP, owner("Job", "j"), created_ms=25),
            pod("p", owner=owner("Job", "j"), volcano_pod_group="v", kai_pod_group="k"),
        ],
        {"j": "v", "p": "v", "k": "v"},
    ),
    "variants of concurrent admission": (
        [
            known("parent", ObjectKind.WORKLOAD, kueue_body(owners=(owner("Job", "j"),)), created_ms=10),
            known("one", ObjectKind.WORKLOAD, kueue_body(variant_of="parent"), created_ms=20),
            known("two", ObjectKind.WORKLOAD, kueue_body(variant_of="parent"), created_ms=20),
        ],
        {"parent": "parent", "one": "parent", "two": "parent"},
    ),
    "placeholders of an application of YuniKorn": (
        [
            job("j"),
            pod("first", owner=owner("Job", "j"), yunikorn=task("app"), created_ms=50),
            pod("kept", yunikorn=task("app", placeholder=True), created_ms=60),
            pod("later", owner=owner("Job", "j"), yunikorn=task("app"), created_ms=70),
        ],
        {"first": "j", "kept": "j", "later": "j"},
    ),
    "a placeholder is never a workload": (
        [pod("kept", yunikorn=task("app", placeholder=True))],
        {"kept": None},
    ),
    "a claim made for a pod": (
        [
            claim("c", "p"),
            job("j"),
            pod("p", owner=owner("Job", "j"), claims=(PodClaim(name="c", own=True),)),
        ],
        {"c": "j"},
    ),
    "a claim that pods share": (
        [
            claim("c"),
            pod("q", claims=(PodClaim(name="c", own=False),), created_ms=95),
            pod("p", claims=(PodClaim(name="c", own=False),), created_ms=90),
        ],
        {"c": "p", "p": "p", "q": "q"},
    ),
    "a claim that nobody uses": ([claim("c")], {"c": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_objects_belong_to_their_workload_in_any_order_of_arrival(name: str) -> None:
    heard, expected = CASES[name]
    for order in permutations(heard):
        identity = Identity()
        for one in order:
            identity.add(one)
        assert {uid: identity.workload_of(uid) for uid in expected} == expected


def test_a_kind_of_job_may_be_added() -> None:
    pods = [pod(uid, owner=owner("SparkApplication", "spark")) for uid in ("driver", "executor")]
    for kinds, expected in ((JOB_KINDS, "driver"), (JOB_KINDS | {"SparkApplication"}, "spark")):
        identity = Identity(job_kinds=kinds)
        for one in pods:
            identity.add(one)
        assert identity.workload_of("driver") == expected


def test_owners_that_own_each_other_do_not_hold_the_identity_up() -> None:
    identity = Identity()
    identity.add(job_object("a", ObjectKind.JOB_SET, owner("JobSet", "b")))
    identity.add(job_object("b", ObjectKind.JOB_SET, owner("JobSet", "a")))
    assert identity.workload_of("a") in {"a", "b"}
