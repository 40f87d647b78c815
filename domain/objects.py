"""
What objects of the cluster say of themselves: one type per kind, the `body` of a `Description`.

Only what a figure or an explanation needs is kept. Resources are whole units of a resource name
(`nvidia.com/gpu: 8`); how much of a physical GPU that is, `domain.quantity` says. What pods say is
read by the million: as in `domain.facts`, that is a struct.
"""

from dataclasses import dataclass
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from domain.claims import DeviceClass, PodClaim, ResourceClaim, ResourceSlice
from domain.facts import ObjectKind
from domain.placement import Placement, Toleration
from domain.quantity import Quota

Resources: TypeAlias = dict[str, int]
Labels: TypeAlias = dict[str, str]


class Owner(Struct, frozen=True, kw_only=True, gc=False):
    """The controlling owner reference."""

    api_group: str
    kind: str
    name: str
    uid: str


class YuniKornTask(Struct, frozen=True, kw_only=True, gc=False):
    """What a pod says to YuniKorn; a placeholder keeps the place of a pod of its task group."""

    app: str
    task_group: str
    placeholder: bool


class Pod(Struct, frozen=True, kw_only=True, gc=False):
    """
    A pod: what it asks for and whom it belongs to.

    `gpu_requests` is the effective request of GPU resources (KEP-753), `other_requests` of all others, in
    thousandths; `containers` counts the main ones, all of which must have started before the pod runs.
    `queue` is the one that a label for KAI or YuniKorn names, `scheduling_group` the in-tree PodGroup. Tables
    of other schedulers alone tell `gpu_model`, `milli_cpus` and `nodes`; there a pod is a whole stay. Without
    a `placement` any untainted node will do. Its own node is told by its binding alone.
    """

    owner: Owner | None
    labels: Labels
    gpu_requests: Resources
    gates: tuple[str, ...]
    scheduler: str
    priority: int
    priority_class: str
    kueue_workload: str = ""
    kueue_pod_group: str = ""
    kueue_queue: str = ""
    volcano_pod_group: str = ""
    plugin_pod_group: str = ""
    containers: int = 1
    kai_pod_group: str = ""
    scheduling_group: str = ""
    queue: str = ""
    claims: tuple[PodClaim, ...] = ()
    yunikorn: YuniKornTask | None = None
    gpu_model: str = ""
    placement: Placement | None = None
    milli_cpus: int | UnsetType = UNSET
    nodes: int | UnsetType = UNSET
    other_requests: Resources | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`gpu_allocatable` falls below `gpu_capacity` with a sick GPU; `other_allocatable` is in thousandths."""

    labels: Labels
    gpu_capacity: Resources
    gpu_allocatable: Resources
    unschedulable: bool
    ready: str
    taints: tuple[str, ...]
    other_allocatable: Resources | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """Its labels may name the team."""

    labels: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """Kubernetes' or Kueue's priority class."""

    value: int
    global_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota:
    """
    GPU requests that a namespace may make, by resource name.

    `scoped`: only some of its pods count, which are not told apart here.
    """

    hard: dict[str, Quota]
    scoped: bool | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    A batch/v1 Job. `queue` is its Kueue queue label, empty without one.

    `most_seconds` is its active deadline: it is failed once it has run so long.
    """

    owner: Owner | None
    labels: Labels
    suspend: bool
    parallelism: int
    completions: int | None
    gpu_requests_per_pod: Resources
    priority_class: str
    queue: str
    placement: Placement | None = None
    most_seconds: int | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class CronJob:
    """The owner of Jobs; never itself a workload."""

    schedule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """
    `gpu_requests` is per pod; `min_count` is set under partial admission; `placement` is the pods'.

    `other_requests` is per pod what it asks beside GPUs, in thousandths; not set where nobody tells.
    """

    name: str
    count: int
    min_count: int | None
    gpu_requests: Resources
    placement: Placement | None = None
    other_requests: Resources | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """
    A Kueue Workload.

    `reserved` maps flavor to resource to total, while quota is reserved, of GPUs; `other_reserved` of all
    other resources, in thousandths of their units. `evictions` is Kueue's own count by reason: it tells of
    evictions that no condition shows any more. `dispatched_to` is the worker cluster to which MultiKueue
    gave it. `most_seconds` is its maximum execution time: it is stopped once it was admitted for so long.
    """

    owners: tuple[Owner, ...]
    job_uid: str
    labels: Labels
    local_queue: str
    cluster_queue: str
    active: bool
    priority: int
    priority_class: str
    pod_sets: tuple[PodSet, ...]
    reserved: dict[str, Resources]
    checks: dict[str, str]
    evictions: dict[str, int]
    slice_of: str = ""
    variant_of: str = ""
    dispatched_to: str = ""
    other_reserved: dict[str, Resources] | UnsetType = UNSET
    most_seconds: int | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorQuota:
    """One flavor and resource of a ClusterQueue or Cohort."""

    flavor: str
    resource: str
    nominal: Quota
    borrowing_limit: Quota
    lending_limit: Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueue:
    """`weight_milli` is the fair-sharing weight times 1000; missing in the object is 1000."""

    cohort: str
    quotas: tuple[FlavorQuota, ...]
    strategy: str
    stop_policy: str
    weight_milli: int
    reclaim_within_cohort: str
    within_cluster_queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueue:
    """Kueue's door in a namespace; it leads to one ClusterQueue."""

    cluster_queue: str
    stop_policy: str
    weight_milli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Queues that lend to each other; cohorts form a tree."""

    parent: str
    quotas: tuple[FlavorQuota, ...]
    weight_milli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFlavor:
    """Kueue's name for a kind of node; pods that go there are given its labels and `tolerations`."""

    node_labels: Labels
    taints: tuple[str, ...]
    topology: str
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoQueue:
    """Volcano's queue."""

    weight: int
    parent: str
    reclaimable: bool
    capability: dict[str, Quota]
    deserved: dict[str, Quota]
    guarantee: dict[str, Quota]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """
    A PodGroup of Volcano, scheduler-plugins, KAI or Kubernetes.

    Phases are kept as transitions.
    """

    owner: Owner | None
    labels: Labels
    min_member: int
    queue: str
    priority_class: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedJob(PodGroup):
    """
    A job from a table of another scheduler, described like a PodGroup with one member.

    `nodes` is how many nodes it spread over, or asked for: one pod stands for all of them.
    """

    nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoJob:
    """Volcano's own job kind; its PodGroup is the workload. `placement` is that of all its GPU pods."""

    owner: Owner | None
    labels: Labels
    min_available: int
    replicas: int
    gpu_requests: Resources
    queue: str
    priority_class: str
    placement: Placement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobObject:
    """
    A job of a kind beside Job and Volcano's: JobSet, RayJob, TrainJob, PyTorchJob and their like.

    `pod_sets` are the pods that it declares, none where others decide them, such as a TrainJob's
    runtime. `queue` is its Kueue queue label, empty without one.
    """

    owner: Owner | None
    labels: Labels
    suspend: bool
    pod_sets: tuple[PodSet, ...]
    priority_class: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KaiQueue:
    """KAI's queue; queues form a tree. Its numbers are those of GPUs."""

    parent: str
    priority: int | None
    quota: Quota
    limit: Quota
    over_quota_weight_milli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticQuota:
    """GPUs that scheduler-plugins promises to a namespace, and allows it at most, by resource name."""

    least: dict[str, Quota]
    most: dict[str, Quota]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCheck:
    """What Kueue asks before it admits; `controller` answers."""

    controller: str


Body: TypeAlias = (
    Pod
    | Node
    | Namespace
    | PriorityClass
    | ResourceQuota
    | Job
    | CronJob
    | Workload
    | ClusterQueue
    | LocalQueue
    | Cohort
    | ResourceFlavor
    | VolcanoQueue
    | PodGroup
    | VolcanoJob
    | JobObject
    | KaiQueue
    | ElasticQuota
    | AdmissionCheck
    | ResourceClaim
    | ResourceSlice
    | DeviceClass
)

# What may be a job object: it has an owner, and a controller makes pods of it.
JobBody: TypeAlias = Job | VolcanoJob | JobObject

# Kinds whose objects are described alike.
JOB_OBJECTS = frozenset({
    ObjectKind.JOB_SET, ObjectKind.RAY_JOB, ObjectKind.RAY_CLUSTER, ObjectKind.TRAIN_JOB,
    ObjectKind.PYTORCH_JOB, ObjectKind.TF_JOB, ObjectKind.MPI_JOB, ObjectKind.XGBOOST_JOB,
    ObjectKind.PADDLE_JOB, ObjectKind.JAX_JOB, ObjectKind.APP_WRAPPER,
})  # fmt: skip
POD_GROUPS = frozenset({
    ObjectKind.VOLCANO_POD_GROUP, ObjectKind.PLUGIN_POD_GROUP, ObjectKind.KAI_POD_GROUP, ObjectKind.POD_GROUP,
    ObjectKind.IMPORTED_JOB,
})  # fmt: skip

BODY_TYPES: dict[ObjectKind, type[Body]] = {
    ObjectKind.POD: Pod,
    ObjectKind.NODE: Node,
    ObjectKind.NAMESPACE: Namespace,
    ObjectKind.PRIORITY_CLASS: PriorityClass,
    ObjectKind.RESOURCE_QUOTA: ResourceQuota,
    ObjectKind.JOB: Job,
    ObjectKind.CRON_JOB: CronJob,
    ObjectKind.WORKLOAD: Workload,
    ObjectKind.CLUSTER_QUEUE: ClusterQueue,
    ObjectKind.LOCAL_QUEUE: LocalQueue,
    ObjectKind.COHORT: Cohort,
    ObjectKind.RESOURCE_FLAVOR: ResourceFlavor,
    ObjectKind.WORKLOAD_PRIORITY_CLASS: PriorityClass,
    ObjectKind.VOLCANO_QUEUE: VolcanoQueue,
    ObjectKind.VOLCANO_JOB: VolcanoJob,
    ObjectKind.KAI_QUEUE: KaiQueue,
    ObjectKind.ELASTIC_QUOTA: ElasticQuota,
    ObjectKind.ADMISSION_CHECK: AdmissionCheck,
    ObjectKind.RESOURCE_CLAIM: ResourceClaim,
    ObjectKind.RESOURCE_SLICE: ResourceSlice,
    ObjectKind.DEVICE_CLASS: DeviceClass,
    **dict.fromkeys(POD_GROUPS, PodGroup),
    ObjectKind.IMPORTED_JOB: ImportedJob,
    **dict.fromkeys(JOB_OBJECTS, JobObject),
}
