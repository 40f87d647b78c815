"""The large site of `waiting_city`, as a store keeps it: lives, descriptions and terms of an instant."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import polars as pl

from analytics.fragmentation.places import written
from analytics.why.nodes import Gang, Hold, Node
from analytics.why.order import Waiting
from benchmarks.seeded_store import FOREVER, MICRO
from benchmarks.waiting_city import City
from domain.facts import Batch, Description, ObjectKind, SourceMark
from domain.objects import ClusterQueue, PodSet, ResourceFlavor, Workload
from domain.observed import Stretch
from domain.placement import Placement
from store import dimensions
from store.embedded import Store

CLUSTER: Final = "north"
DAY_MS: Final = 86_400_000
# Everybody has waited since some instant of the first day; now is its end.
AS_OF_MS: Final = DAY_MS
_GPU: Final = "nvidia.com/gpu"
_FLAVORS: Final[Mapping[str, ResourceFlavor]] = {
    name: ResourceFlavor(node_labels={"nvidia.com/gpu.product": product}, taints=(), topology="")
    for name, product in (("a100", "a100"), ("h100", "h100"), ("l40s", "l40s"), ("a100-mig", "a100"))
}


def kept(site: City) -> Store:
    """A store in memory that knows all of the site."""
    store = Store.open(None)
    kinds = (ObjectKind.NODE, ObjectKind.POD, ObjectKind.WORKLOAD, ObjectKind.CLUSTER_QUEUE)
    store.append(
        Batch(
            cluster=CLUSTER,
            descriptions=[*_queues(site), *(_waiting(one, gang) for one, gang in site.waiting)],
            marks={
                kind: SourceMark(kind=kind, resource_version="1", epoch=0, seen_ms=AS_OF_MS) for kind in kinds
            },
            sights={kind: [Stretch(start_ms=0, end_ms=AS_OF_MS)] for kind in kinds},
        )
    )
    tables = {**_lives(site), **_nodes(site.nodes), **_held(site.holds), **_terms(site), **_objects(site)}
    with store.transaction() as connection:
        for name, rows in tables.items():
            connection.register("incoming", pl.DataFrame(rows, infer_schema_length=None).to_arrow())
            connection.execute(f"insert into {name} by name from incoming")
            connection.unregister("incoming")
        dimensions.recount(connection, CLUSTER)
    return store


def _told(uid: str, kind: ObjectKind, name: str, body: object, *, from_ms: int = 0) -> Description:
    return Description(
        uid=uid, kind=kind, namespace="team" if kind is ObjectKind.WORKLOAD else "", name=name,
        from_ms=from_ms, observed_ms=from_ms, body=msgspec.json.encode(body),
    )  # fmt: skip


def _queues(site: City) -> Iterable[Description]:
    for name, flavor in _FLAVORS.items():
        yield _told(f"flavor-{name}", ObjectKind.RESOURCE_FLAVOR, name, flavor)
    for row in site.rows:
        if row["what"] == "ClusterQueue":
            name = str(row["queue"])
            body = ClusterQueue(
                cohort=str(row["parent"]), quotas=(), stop_policy="", weight_milli=1000,
                strategy="StrictFIFO" if name in site.strict else "BestEffortFIFO",
                reclaim_within_cohort="", within_cluster_queue="",
            )  # fmt: skip
            yield _told(f"queue-{name}", ObjectKind.CLUSTER_QUEUE, name, body)


def _objects(site: City) -> dict[str, list[dict[str, Any]]]:
    return {
        "object_state": [
            {"cluster": CLUSTER, "uid": one.uid, "kind": str(one.kind), "namespace": "", "name": one.name,
             "resource_version": "1", "seen_ms": 0}
            for one in _queues(site)
        ]
    }  # fmt: skip


def _waiting(one: Waiting, gang: Gang) -> Description:
    body = Workload(
        owners=(), job_uid="", labels={"team": one.queue, "app": one.uid}, local_queue=one.queue,
        cluster_queue="", active=True, priority=one.priority, priority_class="", reserved={}, checks={},
        evictions={},
        pod_sets=tuple(
            PodSet(
                name=f"set-{number}", count=pods.pods, min_count=None, gpu_requests=dict(pods.devices),
                placement=pods.placement,
            )
            for number, pods in enumerate(gang.pod_sets)
        ),
    )  # fmt: skip
    return _told(one.uid, ObjectKind.WORKLOAD, one.uid, body, from_ms=one.since_ms)


def _lives(site: City) -> dict[str, list[dict[str, Any]]]:
    common: dict[str, Any] = {"cluster": CLUSTER, "open_until_ms": FOREVER}
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("workload", "span", "member", "workload_shape", "workload_cut")
    }
    for one, gang in site.waiting:
        key = common | {"workload_uid": one.uid}
        asked = sum(pods.pods * count for pods in gang.pod_sets for count in pods.devices.values())
        tables["workload"].append(key | _work(one.queue, one.uid, asked, since_ms=one.since_ms))
        tables["span"].append(
            key | {"state": "queued", "start_ms": one.since_ms, "reason": "Pending", "first_wait": True}
        )
        tables["member"].append(key | {"object_uid": one.uid, "kind": "Workload"})
        tables["workload_cut"].append(key | {"seq": 1})
        tables["workload_shape"] += [
            key | {"part": part, "resource": resource, "pods": pods.pods, "devices": devices,
                   "wants": written(pods.placement) if pods.placement else "",
                   "others": json.dumps(dict(pods.others))}
            for part, pods in enumerate(gang.pod_sets)
            for resource, devices in pods.devices.items()
        ]  # fmt: skip
    for uid in {hold.workload_uid for hold in site.holds}:
        key = common | {"workload_uid": uid}
        tables["workload"].append(key | _work("team-0", uid, 8, since_ms=0) | {"first_placed_ms": 1})
        tables["span"].append(
            key | {"state": "running", "start_ms": 1, "reason": "Running", "first_wait": False}
        )
    return tables


def _work(queue: str, uid: str, gpus: int, *, since_ms: int) -> dict[str, Any]:
    return {
        "kind": "Workload", "namespace": "team", "name": uid, "job_uid": "", "team": queue,
        "user_name": "ada", "project": "", "queue": queue, "priority_class": "", "service_class": "batch",
        "gpu_model": "", "gang_size": 1, "requested_micro_gpus": gpus * MICRO, "submitted_ms": since_ms,
        "outcome": "open", "skewed": "", "is_copy": False, "first_placed_ms": None,
    }  # fmt: skip


def _nodes(nodes: Iterable[Node]) -> dict[str, list[dict[str, Any]]]:
    rows = [
        {"cluster": CLUSTER, "node": node.name, "gpu_model": node.labels["nvidia.com/gpu.product"],
         "resource": resource, "replicas": 1, "start_ms": 0, "capacity": node.capacity[resource],
         "allocatable": count, "schedulable": node.schedulable, "labels": json.dumps(dict(node.labels)),
         "taints": json.dumps(node.taints), "others": json.dumps({**node.others, "pods": 110})}
        for node in nodes
        for resource, count in node.allocatable.items()
    ]  # fmt: skip
    return {"node_device": rows}


def _held(holds: Iterable[Hold]) -> dict[str, list[dict[str, Any]]]:
    holding, devices = [], []
    for number, hold in enumerate(holds):
        pod = {
            "cluster": CLUSTER, "open_until_ms": FOREVER, "workload_uid": hold.workload_uid,
            "pod_uid": f"pod-{number}",
        }  # fmt: skip
        holding.append(
            pod | {"attempt": 1, "pod_name": f"pod-{number}", "node": hold.node, "gpu_model": "",
                   "micro_gpus": hold.devices[_GPU] * MICRO, "bound_ms": 1, "bound_source": "condition",
                   "phase": "Running", "restarts": 0, "milli_cpus": hold.others["cpu"],
                   "memory_bytes": hold.others["memory"], "other_asks": "{}"}
        )  # fmt: skip
        devices.append(pod | {"resource": _GPU, "devices": hold.devices[_GPU]})
    return {"holding": holding, "pod_device": devices}


def _terms(site: City) -> dict[str, list[dict[str, Any]]]:
    terms, uses, flavors = [], [], []
    for number, row in enumerate(site.rows):
        if row["what"] == "use":
            uses.append(
                {"cluster": CLUSTER, "workload_uid": f"holder-{number}", "queue": row["queue"],
                 "flavor": row["flavor"], "resources": row["resources"], "start_ms": 1,
                 "open_until_ms": FOREVER}
            )  # fmt: skip
        else:
            terms.append(
                {"cluster": CLUSTER, "kind": row["what"], "name": row["queue"], "parent": row["parent"],
                 "weight_milli": 1000, "quotas": row["quotas"], "start_ms": 0}
            )  # fmt: skip
            for flavor, resource, *_ in json.loads(str(row["quotas"])):
                wants = written(Placement(labels=_FLAVORS[flavor].node_labels))
                flavors.append(
                    {"cluster": CLUSTER, "queue": row["queue"], "resource": resource, "flavor": flavor,
                     "wants": wants, "start_ms": 0}
                )  # fmt: skip
    return {"kueue_terms": terms, "quota_use": uses, "queue_flavor": flavors}
