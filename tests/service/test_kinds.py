"""Objects of later schedulers and operators, from what the API server sends to the lives of workloads."""

import json
from typing import Any

from store.embedded import Store
from tests.cases.replay import Feed, Json, told, value
from tests.shared import shared

TEN = "2026-03-02T10:00:00Z"
AFTER = "2026-03-02T12:00:00Z"
_AT = "2026-03-02T09:{:02d}:00Z"
GPU = {"nvidia.com/gpu": 8}


def at(minute: int) -> str:
    return _AT.format(minute)


def made(api: str, kind: str, name: str, minute: int, *, owner: str = "", **parts: Any) -> Json:
    """An object; its uid is its name, and its owner is written `Kind/name`."""
    metadata: Json = {"name": name, "namespace": "t", "uid": name, "creationTimestamp": at(minute)}
    metadata |= parts.pop("metadata", {})
    if owner:
        above, _, uid = owner.partition("/")
        metadata["ownerReferences"] = [{"kind": above, "name": uid, "uid": uid, "controller": True}]
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def template(gpus: int, **spec: Any) -> Json:
    containers = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}}]
    return {"spec": {"containers": containers, **spec}}


def pod(
    name: str, minute: int, *, bound: int | None = None, gpus: int = 8, node: str = "n1", **parts: Any
) -> Json:
    spec = template(gpus)["spec"] | parts.pop("spec", {})
    status: Json = parts.pop("status", {})
    if bound is not None:
        spec["nodeName"] = node
        status |= {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(bound)}],
            "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": at(bound)}}}],
        }
    return made("v1", "Pod", name, minute, spec=spec, status=status, **parts)


def lives(*objects: Json) -> Store:
    """The store after each object was seen once, at ten."""
    feed = Feed()
    for one in objects:
        feed.see("ADDED", one, TEN)
    return feed.settled()


def workloads(store: Store) -> list[tuple[str, str, int, float]]:
    """Kind, name, minimum members and GPUs asked for of each workload."""
    rows = store.rows("select kind, name, gang_size, requested_micro_gpus from workload order by name")
    return [
        (str(r["kind"]), str(r["name"]), int(str(r["gang_size"])), int(str(r["requested_micro_gpus"])) / 1e6)
        for r in rows
    ]


def ray_spec(workers: int, **more: Any) -> Json:
    group = {"groupName": "gpu", "replicas": workers, "template": template(8)}
    return {"headGroupSpec": {"template": template(0)}, "workerGroupSpecs": [group], **more}


RAY_JOB = made("ray.io/v1", "RayJob", "rj", 0, spec={"rayClusterSpec": ray_spec(2)})
RAY_CLUSTER = made("ray.io/v1", "RayCluster", "rc", 0, owner="RayJob/rj", spec=ray_spec(2))


def test_a_ray_job_its_cluster_and_its_submitter_are_one_workload() -> None:
    store = lives(
        RAY_JOB,
        RAY_CLUSTER,
        pod("head", 1, bound=2, gpus=0, owner="RayCluster/rc"),
        pod("w0", 1, bound=2, owner="RayCluster/rc"),
        pod("w1", 1, bound=5, owner="RayCluster/rc"),
        made("batch/v1", "Job", "submit", 6, owner="RayJob/rj", spec={"template": template(0)}),
        pod("s", 6, bound=6, gpus=0, owner="Job/submit"),
    )
    assert workloads(store) == [("RayJob", "rj", 3, 16.0)]
    answer = told(store, "rj", AFTER)
    assert (answer["first_placed_at"], len(answer["attempts"])) == ("2026-03-02T09:05:00.000Z", 1)
    assert value(store, "held_gpus", AFTER) == 16


def test_a_second_try_of_a_ray_job_is_a_second_attempt_of_the_same_workload() -> None:
    feed = Feed()
    first = pod("w0", 1, bound=2, owner="RayCluster/rc")
    for one in (RAY_JOB, RAY_CLUSTER, pod("h0", 1, bound=2, gpus=0, owner="RayCluster/rc"), first):
        feed.see("ADDED", one, at(3))
    feed.see("DELETED", first, at(10))
    feed.see("DELETED", pod("h0", 1, bound=2, gpus=0, owner="RayCluster/rc"), at(10))
    feed.see("DELETED", RAY_CLUSTER, at(10))
    again = made("ray.io/v1", "RayCluster", "rc2", 12, owner="RayJob/rj", spec=ray_spec(2))
    feed.see("ADDED", again, at(12))
    for name in ("h1", "w2", "w3"):
        gpus = 0 if name == "h1" else 8
        feed.see("ADDED", pod(name, 12, bound=14, gpus=gpus, owner="RayCluster/rc2"), at(15))
    store = feed.settled()
    assert workloads(store) == [("RayJob", "rj", 3, 16.0)]
    assert [attempt["number"] for attempt in told(store, "rj", AFTER)["attempts"]] == [1, 2]


def over(running: Json, minute: int, *, code: int = 0) -> Json:
    """A pod after its end."""
    ended = {"exitCode": code, "finishedAt": at(minute)}
    running["status"] |= {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [{"name": "main", "state": {"terminated": ended}}],
    }
    return running


def train_job(*, done: bool) -> list[Json]:
    pods = [pod("p0", 11, bound=12, owner="Job/try2"), pod("p1", 11, bound=13, owner="Job/try2")]
    ended = [{"type": "Complete", "status": "True", "lastTransitionTime": at(40)}] if done else []
    jobs = [{"name": "node", "template": {"spec": {"parallelism": 2, "template": template(8)}}}]
    finished = [{"type": "Failed", "status": "True", "lastTransitionTime": at(10)}]
    api = "trainer.kubeflow.org/v1alpha1"
    return [
        made(api, "TrainJob", "tj", 0, spec={"trainer": {"numNodes": 2}}, status={"conditions": ended}),
        made(
            "jobset.x-k8s.io/v1alpha2", "JobSet", "js", 0, owner="TrainJob/tj", spec={"replicatedJobs": jobs}
        ),
        # The first try of the JobSet's Job failed, the second one ran to the end.
        made("batch/v1", "Job", "try1", 0, owner="JobSet/js", status={"conditions": finished},
             spec={"parallelism": 2, "template": template(8)}),
        made("batch/v1", "Job", "try2", 11, owner="JobSet/js",
             spec={"parallelism": 2, "template": template(8)}),
        *([over(one, 39) for one in pods] if done else pods),
    ]  # fmt: skip


def test_a_train_job_and_all_that_is_made_for_it_are_one_workload() -> None:
    store = lives(*train_job(done=False))
    assert workloads(store) == [("TrainJob", "tj", 2, 16.0)]
    answer = told(store, "tj", AFTER)
    assert (answer["submitted_at"], answer["first_placed_at"]) == (
        "2026-03-02T09:00:00.000Z",
        "2026-03-02T09:13:00.000Z",
    )


def test_a_train_job_ends_as_it_says_itself_whatever_its_first_try_came_to() -> None:
    answer = told(lives(*train_job(done=True)), "tj", AFTER)
    assert answer["outcome"] == "succeeded"


def test_a_suspended_job_of_any_kind_waits_in_its_queue_or_is_held() -> None:
    spec = {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Worker": {"template": template(4)}}}
    queued = {"labels": {"kueue.x-k8s.io/queue-name": "main"}}
    store = lives(
        made("kubeflow.org/v1", "PyTorchJob", "queued", 0, spec=spec, metadata=queued),
        made("kubeflow.org/v1", "PyTorchJob", "held", 0, spec=spec),
        made("jobset.x-k8s.io/v1alpha2", "JobSet", "set", 0, spec={"suspend": True}),
    )
    rows = store.rows("select workload_uid as uid, state from span order by uid")
    assert {row["uid"]: row["state"] for row in rows} == {"queued": "queued", "held": "held", "set": "held"}


def test_an_mpi_job_is_placed_when_all_its_pods_are_bound() -> None:
    replicas = {
        "Launcher": {"replicas": 1, "template": template(0)},
        "Worker": {"replicas": 2, "template": template(8)},
    }
    store = lives(
        made("kubeflow.org/v2beta1", "MPIJob", "m", 0, spec={"mpiReplicaSpecs": replicas}),
        made("batch/v1", "Job", "m-launcher", 1, owner="MPIJob/m", spec={"template": template(0)}),
        pod("l", 1, bound=2, gpus=0, owner="Job/m-launcher"),
        pod("w0", 1, bound=2, owner="MPIJob/m"),
        pod("w1", 1, bound=30, owner="MPIJob/m"),
    )
    assert workloads(store) == [("MPIJob", "m", 3, 16.0)]
    assert told(store, "m", AFTER)["first_placed_at"] == "2026-03-02T09:30:00.000Z"


def test_a_job_object_has_the_shapes_of_its_pods_before_there_are_any() -> None:
    replicas = {"Launcher": {"template": template(0)}, "Worker": {"replicas": 2, "template": template(8)}}
    store = lives(made("kubeflow.org/v2beta1", "MPIJob", "m", 0, spec={"mpiReplicaSpecs": replicas}))
    assert store.rows("select pods, devices from workload_shape") == [{"pods": 2, "devices": 8}]


def test_half_a_gpu_of_kai_is_held_once_and_the_pod_that_keeps_the_card_not_at_all() -> None:
    group = made(
        "scheduling.run.ai/v2alpha2", "PodGroup", "pg", 1, spec={"minMember": 1, "queue": "team-a"},
        metadata={"ownerReferences": [{"kind": "Pod", "name": "half", "uid": "half"}]},
    )  # fmt: skip
    annotations = {"gpu-fraction": "0.5", "pod-group-name": "pg"}
    keeper = pod("keeper", 1, bound=2, gpus=1, metadata={"namespace": "kai-resource-reservation"})
    store = lives(group, pod("half", 1, bound=2, gpus=0, metadata={"annotations": annotations}), keeper)
    assert value(store, "held_gpus", AFTER) == 0.5
    answer = told(store, "pg", AFTER)
    assert (answer["queue"], answer["name"], answer["requested_gpus"]) == ("team-a", "half", 0.5)


def test_a_pod_of_its_own_in_a_gang_without_phases_ends_with_its_pod() -> None:
    group = made("scheduling.k8s.io/v1alpha3", "PodGroup", "g", 0,
                 spec={"schedulingPolicy": {"gang": {"minCount": 1}}})  # fmt: skip
    failed = over(pod("p", 1, bound=2, spec={"schedulingGroup": {"podGroupName": "g"}}), 20, code=1)
    answer = told(lives(group, failed), "g", AFTER)
    assert (answer["outcome"], answer["ended_at"]) == ("failed", "2026-03-02T09:20:00.000Z")


def yunikorn(name: str, *, placeholder: bool, minute: int, bound: int | None, **more: Any) -> Json:
    annotations = {"yunikorn.apache.org/task-group-name": "w"}
    if placeholder:
        annotations["yunikorn.apache.org/placeholder"] = "true"
    labels = {"applicationId": "app", "queue": "root.t"}
    return pod(
        name, minute, bound=bound, spec={"schedulerName": "yunikorn"},
        metadata={"annotations": annotations, "labels": labels}, **more,
    )  # fmt: skip


def test_a_placeholder_holds_gpus_for_its_workload_until_the_pod_comes_for_which_it_stands() -> None:
    feed = Feed()
    kept = yunikorn("tg", placeholder=True, minute=1, bound=2)
    feed.see(
        "ADDED",
        made("batch/v1", "Job", "j", 0, spec={"parallelism": 1, "template": template(8)}),
        at(1),
    )
    feed.see("ADDED", yunikorn("real", placeholder=False, minute=1, bound=None, owner="Job/j"), at(1))
    feed.see("ADDED", kept, at(2))
    feed.see("MODIFIED", yunikorn("real", placeholder=False, minute=1, bound=10, owner="Job/j"), at(10))
    # The placeholder is still there for a minute.
    feed.see("DELETED", kept, at(11))
    store = feed.settled()
    assert workloads(store) == [("Job", "j", 1, 8.0)]
    held = {minute: value(store, "held_gpus", at(minute)) for minute in (2, 5, 11, 15)}
    # `as_of` is exclusive: at 9:02 the placeholder has only just been bound.
    assert held == {2: 0, 5: 8, 11: 8, 15: 8}
    answer = told(store, "j", AFTER)
    assert (answer["first_placed_at"], answer["queue"]) == ("2026-03-02T09:10:00.000Z", "root.t")
    # The attempt began when the place was taken.
    assert [attempt["start_at"] for attempt in answer["attempts"]] == ["2026-03-02T09:02:00.000Z"]


def claim(name: str, *, pod_uid: str = "", **ask: Any) -> Json:
    exactly: Json = {"deviceClassName": "gpu.nvidia.com", "count": 1} | ask
    asked = {"name": "gpu", "exactly": exactly}
    given: Json = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
    if ask.get("adminAccess"):
        given["adminAccess"] = True
    status = {"allocation": {"devices": {"results": [given] * exactly["count"]}}}
    return made(
        "resource.k8s.io/v1", "ResourceClaim", name, 0, owner=f"Pod/{pod_uid}" if pod_uid else "",
        spec={"devices": {"requests": [asked]}}, status=status,
    )  # fmt: skip


def own_claim(name: str, template_name: str = "one") -> Json:
    return {
        "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template_name}]},
        "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]},
    }


def shared_claim(name: str) -> Json:
    return {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}}


def test_a_pod_holds_the_gpus_of_its_claim() -> None:
    store = lives(claim("c", pod_uid="p", count=2), pod("p", 1, bound=2, gpus=0, **own_claim("c")))
    assert (workloads(store), value(store, "held_gpus", AFTER)) == ([("Pod", "p", 1, 2.0)], 2)


def test_a_claim_that_pods_share_is_held_once_by_one_after_the_other() -> None:
    job = made("batch/v1", "Job", "j", 0, spec={"parallelism": 2, "template": template(0)})
    feed = Feed()
    first = pod("a", 1, bound=2, gpus=0, owner="Job/j", **shared_claim("c"))
    for one in (job, claim("c"), first, pod("b", 1, bound=4, gpus=0, owner="Job/j", **shared_claim("c"))):
        feed.see("ADDED", one, at(5))
    feed.see("DELETED", first, at(20))
    store = feed.settled()
    assert workloads(store) == [("Job", "j", 1, 1.0)]
    assert {minute: value(store, "held_gpus", at(minute)) for minute in (6, 10, 30)} == {6: 1, 10: 1, 30: 1}


def test_a_claim_that_workloads_share_is_held_once() -> None:
    pods = [pod(name, 1, bound=2, gpus=0, **shared_claim("c")) for name in ("a", "b")]
    assert value(lives(claim("c"), *pods), "held_gpus", AFTER) == 1


def test_access_for_administrators_holds_nothing() -> None:
    looks = claim("c", pod_uid="p", adminAccess=True)
    store = lives(looks, pod("p", 1, bound=2, gpus=0, **own_claim("c")), pod("o", 1, bound=2, gpus=1))
    assert value(store, "held_gpus", AFTER) == 1


def test_a_claim_that_stands_for_a_requested_resource_counts_once() -> None:
    extended = {"resource.kubernetes.io/extended-resource-claim": "true"}
    stands_for = claim("x", pod_uid="p")
    stands_for["metadata"]["annotations"] = extended
    assert value(lives(stands_for, pod("p", 1, bound=2, gpus=1)), "held_gpus", AFTER) == 1


def test_a_claim_that_nobody_read_makes_what_its_pod_holds_unknown() -> None:
    rows = lives(pod("p", 1, bound=2, gpus=0, **own_claim("c"))).rows("select micro_gpus from holding")
    assert rows == [{"micro_gpus": None}]


def test_the_samples_of_claims_hold_one_gpu_each() -> None:
    names = ("resourceclaim_allocated", "resourceclaim_pending", "pod_dra_claim", "pod_dra_extended_resource")
    samples = (json.loads(shared(f"reference/samples/{name}.json").read_text()) for name in names)
    store = lives(*samples)
    rows = store.rows("select pod_name, micro_gpus from holding order by pod_name")
    assert [(row["pod_name"], row["micro_gpus"]) for row in rows] == [
        ("dra-1", 1_000_000),
        ("dra-2", 1_000_000),
    ]


def test_what_multikueue_gave_to_another_cluster_runs_from_its_admission() -> None:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": at(minute)}
        for kind, minute in (("QuotaReserved", 5), ("Admitted", 7))
    ]
    pod_sets = [{"name": "main", "count": 2, "template": template(8)}]
    given = made(
        "kueue.x-k8s.io/v1beta2", "Workload", "w", 0, spec={"podSets": pod_sets},
        status={"conditions": conditions, "clusterName": "worker-1"},
    )  # fmt: skip
    # Other pods of the managing cluster are read.
    answer = told(lives(given, pod("other", 1, bound=2)), "w", AFTER)
    assert answer["first_placed_at"] == "2026-03-02T09:07:00.000Z"
    assert [attempt["source"] for attempt in answer["attempts"]] == ["admission"]
