"""Quota that is worked out, not read of a message: a namespace's, and of a queue's CPUs and memory."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from domain.facts import Batch, Description, Moment, ObjectKind, Transition
from domain.objects import ClusterQueue, PodSet, ResourceQuota, Workload
from domain.policy import Policy
from domain.quantity import Quota
from service import why
from store.embedded import Store
from tests.golden.cases import store_of

MINUTE = 60_000
NOW = 10 * MINUTE
GPU = "nvidia.com/gpu"
GIB = 2**30
NODE = {"node": "n1", "capacity": 16, "allocatable": 16, "start_ms": 0, "end_ms": None}


def described(kind: ObjectKind, name: str, body: object, namespace: str = "") -> Description:
    return Description(
        uid=f"{kind}-{name}", kind=kind, namespace=namespace, name=name, from_ms=0, observed_ms=0,
        body=msgspec.json.encode(body),
    )  # fmt: skip


def waiting(gpus: dict[str, int], kind: str) -> dict[str, list[dict[str, Any]]]:
    """Workloads of namespace lab that have waited since the second minute, each for so many GPUs."""
    since = {"start_ms": 2 * MINUTE, "end_ms": None}
    return {
        "workload": [
            {"workload_uid": uid, "kind": kind, "namespace": "lab", "submitted_ms": 2 * MINUTE}
            for uid in gpus
        ],
        "span": [{"workload_uid": uid, "state": "queued", **since} for uid in gpus],
        "workload_shape": [
            {"workload_uid": uid, "pods": 1, "devices": count, "part": 0} for uid, count in gpus.items()
        ],
        "node_device": [NODE],
    }


def told(store: Store, uid: str, as_of_ms: int = NOW) -> dict[str, Any]:
    document = why.document(store, uid, as_of_ms, Policy())
    assert document is not None
    return document


@contextmanager
def namespace(quota: ResourceQuota) -> Iterator[Store]:
    """Of namespace lab `h` holds 4 GPUs; its pod for 2 more is on no node, and over at minute 12."""
    tables = waiting({"four": 4, "nine": 9}, "Job")
    tables["workload"].append(
        {"workload_uid": "h", "namespace": "lab", "submitted_ms": MINUTE, "first_placed_ms": MINUTE}
    )
    tables["span"].append({"workload_uid": "h", "state": "running", "start_ms": MINUTE, "end_ms": None})
    tables["holding"] = [{"workload_uid": "h", "pod_uid": "p1", "bound_ms": MINUTE, "released_ms": None}]
    tables["pod_device"] = [
        {"workload_uid": "h", "pod_uid": uid, "devices": devices} for uid, devices in (("p1", 4), ("p2", 2))
    ]
    moments = [
        ("p1", Moment.CREATED, MINUTE),
        ("p2", Moment.CREATED, MINUTE),
        ("p2", Moment.ENDED, 12 * MINUTE),
    ]
    with store_of(tables) as store:
        store.append(
            Batch(
                cluster="east",
                descriptions=[described(ObjectKind.RESOURCE_QUOTA, "gpus", quota, "lab")],
                transitions=[
                    Transition(uid=uid, kind=ObjectKind.POD, moment=moment, at_ms=at_ms, observed_ms=at_ms)
                    for uid, moment, at_ms in moments
                ],
            )
        )
        with store.transaction() as connection:
            connection.execute(
                "insert into object_state values"
                " ('east', 'ResourceQuota-gpus', 'ResourceQuota', 'lab', 'gpus', '1', 0, null)"
            )
        yield store


def test_what_a_resource_quota_has_left_is_worked_out_without_a_message() -> None:
    hard = {GPU: Quota.of("8")}
    with namespace(ResourceQuota(hard=hard)) as store:
        found = told(store, "four")
        assert found["primary"]["reason"] == "QUOTA_EXHAUSTED"
        assert found["verdict"] == (
            "ResourceQuota gpus of its namespace leaves 2 of 8 GPUs free, and it needs 4."
        )
        assert found["primary"]["blockers"][0]["name"] == "gpus"
        assert [(one["uid"], one["amount"]) for one in found["holders"]] == [("h", 4.0)]
        # Once the other pod is over, there is as much as it needs.
        assert told(store, "four", 12 * MINUTE + 1)["primary"]["reason"] == "UNKNOWN"
        assert told(store, "nine")["verdict"] == (
            "It can never start: it asks 9 GPUs, and ResourceQuota gpus of its namespace allows 8."
        )
    with namespace(ResourceQuota(hard=hard, scoped=True)) as store:
        assert told(store, "four")["primary"]["reason"] == "UNKNOWN", "it may be about other pods"


@contextmanager
def queue(asked: dict[str, tuple[int, int]]) -> Iterator[Store]:
    """A queue of 16 GPUs, 64 CPUs and 256 GiB, of which half is in use; who waits asks 4 GPUs and these."""
    amounts = {GPU: 8_000, "cpu": 32_000, "memory": 128 * GIB * 1000}
    tables = waiting(dict.fromkeys(asked, 4), "Workload")
    quotas = [["a100", name, 2 * amount, None, None] for name, amount in amounts.items()]
    tables["member"] = [
        {"workload_uid": uid, "object_uid": f"Workload-{uid}", "kind": "Workload"} for uid in asked
    ]
    tables["kueue_terms"] = [
        {"name": "main", "parent": "", "quotas": json.dumps(quotas), "start_ms": 0, "end_ms": None}
    ]
    tables["quota_use"] = [
        {"workload_uid": "h", "resources": json.dumps(amounts), "start_ms": MINUTE, "end_ms": None}
    ]
    main = ClusterQueue(
        cohort="", quotas=(), stop_policy="", weight_milli=1000, strategy="BestEffortFIFO",
        reclaim_within_cohort="", within_cluster_queue="",
    )  # fmt: skip
    flavor = {"node_labels": {}, "taints": [], "topology": ""}
    terms = [
        described(ObjectKind.CLUSTER_QUEUE, "main", main),
        described(ObjectKind.RESOURCE_FLAVOR, "a100", flavor),
    ]
    bodies = [described(ObjectKind.WORKLOAD, uid, asks(*others), "lab") for uid, others in asked.items()]
    with store_of(tables) as store:
        store.append(Batch(cluster="east", descriptions=[*terms, *bodies]))
        with store.transaction() as connection:
            for one in terms:
                connection.execute(
                    "insert into object_state values ('east', $uid, $kind, '', $name, '1', 0, null)",
                    {"uid": one.uid, "kind": str(one.kind), "name": one.name},
                )
        yield store


def asks(cpus: int, memory_gib: int) -> Workload:
    pods = PodSet(
        name="main", count=1, min_count=None, gpu_requests={GPU: 4},
        other_requests={"cpu": cpus * 1000, "memory": memory_gib * GIB * 1000},
    )  # fmt: skip
    return Workload(
        owners=(), job_uid="", labels={}, local_queue="main", cluster_queue="", active=True, priority=0,
        priority_class="", reserved={}, checks={}, evictions={}, pod_sets=(pods,),
    )  # fmt: skip


def test_cpus_and_memory_of_a_queue_are_counted_as_its_gpus_are() -> None:
    used = "{} of flavor a100 are in use, it needs {}, and may not borrow."
    little = f"The quota of main has too little left: {used}"
    verdicts = {
        "more-cpus": little.format("32 of 64 CPUs", 33),
        "more-memory": little.format("128 of 256 GiB of memory", 129),
        "never": "It can never start: it asks 65 CPUs of flavor a100, and its queue can have 64 at most.",
    }
    sizes = {"fits": (32, 128), "more-cpus": (33, 128), "more-memory": (1, 129), "never": (65, 1)}
    with queue(sizes) as store:
        assert {uid: told(store, uid)["verdict"] for uid in verdicts} == verdicts
        # There is quota for it: others come first.
        assert told(store, "fits")["primary"]["reason"] in {"BEHIND_IN_QUEUE", "UNKNOWN"}
        assert told(store, "more-cpus")["holders"] == [], "of whom no GPUs are wanted"
