"""What stands there: nodes, flavors, queues, classes and namespaces of the small cluster."""

from dataclasses import dataclass
from random import Random
from uuid import UUID

from sample_data.stamps import stamp
from sample_data.tape import Json, Tape

GPU = "nvidia.com/gpu"
SHARED_GPU = "nvidia.com/gpu.shared"
REPLICAS = 4
COHORT = "research"
_DAYS_BEFORE_MS = 40 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """One kind of GPU: nodes, what a device is called there, and each team's quota of it."""

    name: str
    product: str
    resource: str
    nodes: tuple[str, ...]
    devices: int
    quota: dict[str, int]
    borrowing_limit: int | None = None


FLAVORS = {
    flavor.name: flavor
    for flavor in (
        Flavor(
            name="a100",
            product="NVIDIA-A100-SXM4-80GB",
            resource=GPU,
            nodes=("a100-01", "a100-02", "a100-03", "a100-04"),
            devices=8,
            quota={"vision": 12, "nlp": 12, "ads": 8},
        ),
        Flavor(
            name="h100",
            product="NVIDIA-H100-80GB-HBM3",
            resource=GPU,
            nodes=("h100-01", "h100-02"),
            devices=8,
            quota={"vision": 8, "nlp": 8, "ads": 0},
            borrowing_limit=0,
        ),
        # One share is left for pods outside of Kueue.
        Flavor(
            name="l4-shared",
            product="NVIDIA-L4-SHARED",
            resource=SHARED_GPU,
            nodes=("l4-01",),
            devices=16,
            quota={"vision": 5, "nlp": 5, "ads": 5},
        ),
    )
}

TEAMS = ("vision", "nlp", "ads")
USERS = {
    "vision": ("ana", "bo", "chen", "dara"),
    "nlp": ("emil", "fatima", "goran", "hye"),
    "ads": ("ines", "jonas", "kofi"),
    "platform": ("lena",),
}
PRIORITIES = {"interactive": 100_000, "training": 50_000, "batch": 10_000, "best-effort": 1_000}
PREEMPTING_TEAM = "vision"
"""The queue in which higher classes preempt lower ones."""


def gpu_share(resource: str) -> float:
    """Physical GPUs of one device of that name."""
    return 1 / REPLICAS if resource == SHARED_GPU else 1.0


def new_uid(rng: Random) -> str:
    """A uid of the seed."""
    return str(UUID(int=rng.getrandbits(128), version=4))


def set_up(tape: Tape, rng: Random) -> dict[str, Json]:
    """Put everything that stands there into the first lists; gives the nodes by name."""
    created = stamp(tape.start_ms - _DAYS_BEFORE_MS)

    def metadata(name: str, **more: object) -> Json:
        return {"name": name, "uid": new_uid(rng), "creationTimestamp": created, **more}

    for name in ("kube-system", "default", *TEAMS, "platform"):
        labels = {"kubernetes.io/metadata.name": name}
        if name in USERS:
            labels["team"] = name
        spec = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        tape.stand("namespaces", {"metadata": metadata(name, labels=labels), **spec})
    for name, value in PRIORITIES.items():
        policy = {"value": value, "preemptionPolicy": "Never"}
        tape.stand("priorityclasses", {"metadata": metadata(name), **policy})
        tape.stand("workloadpriorityclasses", {"metadata": metadata(name), "value": value})
    for flavor in FLAVORS.values():
        tape.stand(
            "resourceflavors",
            {"metadata": metadata(flavor.name), "spec": {"nodeLabels": {"pool": flavor.name}}},
        )
    tape.stand("cohorts", {"metadata": metadata(COHORT), "spec": {}})
    for team in TEAMS:
        tape.stand(
            "clusterqueues", {"metadata": metadata(team, generation=1), **_cluster_queue(team, created)}
        )
        spec = {"clusterQueue": team, "stopPolicy": "None"}
        tape.stand("localqueues", {"metadata": metadata("main", namespace=team), "spec": spec})
    nodes = {}
    for flavor in FLAVORS.values():
        for name in flavor.nodes:
            nodes[name] = {
                "metadata": metadata(name, labels=_node_labels(flavor, name)),
                **_node(flavor, created),
            }
            tape.stand("nodes", nodes[name])
    return nodes


def _cluster_queue(team: str, created: str) -> Json:
    groups = []
    for resource in (GPU, SHARED_GPU):
        flavors = []
        for flavor in FLAVORS.values():
            if flavor.resource != resource:
                continue
            entry: Json = {"name": resource, "nominalQuota": str(flavor.quota[team])}
            if flavor.borrowing_limit is not None:
                entry["borrowingLimit"] = str(flavor.borrowing_limit)
            flavors.append({"name": flavor.name, "resources": [entry]})
        groups.append({"coveredResources": [resource], "flavors": flavors})
    return {
        "spec": {
            "cohortName": COHORT,
            "fairSharing": {"weight": "1"},
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "namespaceSelector": {"matchLabels": {"team": team}},
            "preemption": {
                "borrowWithinCohort": {"policy": "Never"},
                "reclaimWithinCohort": "Never",
                "withinClusterQueue": "LowerPriority" if team == PREEMPTING_TEAM else "Never",
            },
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": groups,
            "stopPolicy": "None",
        },
        "status": {
            "conditions": [
                {
                    "type": "Active",
                    "status": "True",
                    "reason": "Ready",
                    "message": "Can admit new workloads",
                    "lastTransitionTime": created,
                }
            ],
        },
    }


def _node_labels(flavor: Flavor, name: str) -> dict[str, str]:
    shared = flavor.resource == SHARED_GPU
    return {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.count": str(flavor.devices // (REPLICAS if shared else 1)),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": flavor.product,
        "nvidia.com/gpu.replicas": str(REPLICAS if shared else 1),
        "nvidia.com/gpu.sharing-strategy": "time-slicing" if shared else "none",
        "pool": flavor.name,
    }


def _node(flavor: Flavor, created: str) -> Json:
    resources = {"cpu": "128", "memory": "1056Gi", "pods": "110", flavor.resource: str(flavor.devices)}
    return {
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastTransitionTime": created,
                }
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "operatingSystem": "linux", "architecture": "amd64"},
        },
    }
