"""Puts what stands there into the first lists: nodes, classes, flavors, cohorts, queues, namespaces."""

from random import Random

from sample_data.fortnight.lives import Json
from sample_data.fortnight.papers import Scribe
from sample_data.fortnight.site import PRIORITIES, Cohort, Flavor, Kind, Limit, Queue, Site
from sample_data.site import new_uid
from sample_data.stamps import stamp

_DAYS_BEFORE_MS = 40 * 86_400_000


def set_up(site: Site, scribe: Scribe, rng: Random, start_ms: int) -> dict[tuple[str, str], Json]:
    """Give everything that stood there before the recording, by stream and name."""
    created = stamp(start_ms - _DAYS_BEFORE_MS)
    objects: dict[tuple[str, str], Json] = {}

    def stand(stream: str, name: str, body: Json, **more: object) -> None:
        metadata = {"name": name, "uid": new_uid(rng), "creationTimestamp": created, **more}
        objects[stream, name] = {"metadata": metadata, **body}
        scribe.stand(stream, objects[stream, name])

    for name, (team, _) in {"kube-system": ("", ""), **site.spaces}.items():
        labels = {"kubernetes.io/metadata.name": name} | ({"team": team} if team else {})
        active = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        stand("namespaces", name, active, labels=labels)
    for name, value in PRIORITIES.items():
        stand("priorityclasses", name, {"value": value, "preemptionPolicy": "Never"})
        stand("workloadpriorityclasses", name, {"value": value})
    for flavor in site.flavors.values():
        stand("resourceflavors", flavor.name, {"spec": {"nodeLabels": {"pool": flavor.name}}})
    for cohort in site.cohorts:
        stand("cohorts", cohort.name, {"spec": _cohort_spec(cohort)}, generation=1)
    for queue in site.queues:
        stand("clusterqueues", queue.name, _cluster_queue(queue, created), generation=1)
    for space, (_, queue_name) in site.spaces.items():
        if queue_name:
            local = {"spec": {"clusterQueue": queue_name, "stopPolicy": "None"}}
            metadata = {"name": "main", "namespace": space, "uid": new_uid(rng), "creationTimestamp": created}
            scribe.stand("localqueues", {"metadata": metadata, **local})
    for flavor in site.flavors.values():
        for node in flavor.nodes:
            stand("nodes", node, _node(flavor, created), labels=_node_labels(flavor, node))
    return objects


def resource_groups(quotas: dict[Kind, Limit]) -> list[Json]:
    """Quotas as Kueue writes them: one group for each resource, its flavors in order."""
    groups: dict[str, list[Json]] = {}
    for (flavor, resource), limit in quotas.items():
        entry: Json = {"name": resource, "nominalQuota": str(limit.nominal)}
        if limit.borrowing is not None:
            entry["borrowingLimit"] = str(limit.borrowing)
        if limit.lending is not None:
            entry["lendingLimit"] = str(limit.lending)
        groups.setdefault(resource, []).append({"name": flavor, "resources": [entry]})
    return [{"coveredResources": [resource], "flavors": flavors} for resource, flavors in groups.items()]


def _cohort_spec(cohort: Cohort) -> Json:
    spec: Json = {"parentName": cohort.parent} if cohort.parent else {}
    if cohort.quotas:
        spec["resourceGroups"] = resource_groups(cohort.quotas)
    return spec


def _cluster_queue(queue: Queue, created: str) -> Json:
    active = {"type": "Active", "status": "True", "reason": "Ready", "message": "Can admit new workloads"}
    return {
        "spec": {
            "cohortName": queue.cohort,
            "fairSharing": {"weight": "1"},
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "namespaceSelector": {},
            "preemption": {
                "borrowWithinCohort": {"policy": "Never"},
                "reclaimWithinCohort": str(queue.reclaims),
                "withinClusterQueue": "LowerPriority" if queue.preempts_own else "Never",
            },
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": resource_groups(queue.quotas),
            "stopPolicy": "None",
        },
        "status": {"conditions": [{**active, "lastTransitionTime": created}]},
    }


def _node_labels(flavor: Flavor, node: str) -> dict[str, str]:
    replicas = (
        max(carving.parts for carving in flavor.carvings if not carving.profile) if _whole(flavor) else 1
    )
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node,
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.count": str(flavor.cards),
        "nvidia.com/gpu.memory": str(flavor.memory_mib),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": flavor.product,
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": "time-slicing" if replicas > 1 else "none",
        "pool": flavor.name,
    }
    for carving in flavor.carvings:
        if carving.profile:
            labels |= {
                "nvidia.com/mig.capable": "true",
                "nvidia.com/mig.strategy": "mixed",
                f"nvidia.com/mig-{carving.profile}.count": str(carving.cards * carving.parts),
            }
    return labels


def _whole(flavor: Flavor) -> bool:
    return not any(carving.profile for carving in flavor.carvings)


def _node(flavor: Flavor, created: str) -> Json:
    devices = {resource: str(count) for resource, count in flavor.devices().items()}
    if not _whole(flavor):
        devices["nvidia.com/gpu"] = "0"
    resources = {"cpu": "128", "memory": "2016Gi", "pods": "110", **devices}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": dict(resources),
            "conditions": [
                {**ready, "message": "kubelet is posting ready status", "lastTransitionTime": created}
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "operatingSystem": "linux", "architecture": "amd64"},
        },
    }
