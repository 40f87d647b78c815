"""
What the collector writes down: facts, each with the instant it is about.

A *transition* is a change that has its own instant: a pod was bound, a condition became true.
A *description* is what an object says of itself from an instant on: its queue, its requests.
An *event sighting* is one reading of a Kubernetes Event. Facts are only ever appended. The same
object translated twice gives the same facts, and `Transition.key` tells that they are the same.

What comes by the million is a struct: it is made in an eighth of the time of a frozen dataclass, and
the garbage collector need not look at it. `msgspec.structs.replace` gives one that differs.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from domain.observed import Stretch


class ObjectKind(StrEnum):
    """Kinds of objects that we read; the value is how the store and the pages spell them."""

    # Enum's own is written in Python, and every look-up of a fact would call it.
    __hash__ = str.__hash__

    POD = "Pod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    EVENT = "Event"
    PRIORITY_CLASS = "PriorityClass"
    RESOURCE_QUOTA = "ResourceQuota"
    JOB = "Job"
    CRON_JOB = "CronJob"
    WORKLOAD = "Workload"
    CLUSTER_QUEUE = "ClusterQueue"
    LOCAL_QUEUE = "LocalQueue"
    COHORT = "Cohort"
    RESOURCE_FLAVOR = "ResourceFlavor"
    WORKLOAD_PRIORITY_CLASS = "WorkloadPriorityClass"
    VOLCANO_QUEUE = "VolcanoQueue"
    VOLCANO_POD_GROUP = "VolcanoPodGroup"
    VOLCANO_JOB = "VolcanoJob"
    PLUGIN_POD_GROUP = "SchedulerPluginsPodGroup"
    ELASTIC_QUOTA = "ElasticQuota"
    KAI_QUEUE = "KaiQueue"
    KAI_POD_GROUP = "KaiPodGroup"
    POD_GROUP = "PodGroup"
    ADMISSION_CHECK = "AdmissionCheck"
    JOB_SET = "JobSet"
    RAY_JOB = "RayJob"
    RAY_CLUSTER = "RayCluster"
    TRAIN_JOB = "TrainJob"
    PYTORCH_JOB = "PyTorchJob"
    TF_JOB = "TFJob"
    MPI_JOB = "MPIJob"
    XGBOOST_JOB = "XGBoostJob"
    PADDLE_JOB = "PaddleJob"
    JAX_JOB = "JAXJob"
    APP_WRAPPER = "AppWrapper"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    IMPORTED_JOB = "ImportedJob"
    # Not of a cluster: what a job tells of a checkpoint, as an object of our own.
    CHECKPOINT = "Checkpoint"
    # Not of a cluster either: a card, or the driver of a node, as exporters tell of them.
    GPU = "GPU"


class Moment(StrEnum):
    """
    What happened. `subject`, `state`, `reason` and `amount` of the transition refine it.

    | moment | subject | state | amount |
    |---|---|---|---|
    | CREATED | | | |
    | CONDITION | its type | True, False, Unknown | Evicted: evictions counted so far |
    | PHASE | | the phase | |
    | BOUND | node | | |
    | CONTAINER_STARTED | container | `main`, `sidecar` or `init` | |
    | CONTAINER_ENDED | container | as above | exit code |
    | RESTARTS | container | | restarts counted so far |
    | ENDED | | Succeeded or Failed | |
    | CHECKPOINT | who told, see `ToldBy` | | its step |
    | GPU_FAULT | UUID of the GPU | see `FaultKind` | the XID |
    | DELETE_REQUESTED | | | |
    | GONE | | | |
    """

    __hash__ = str.__hash__

    CREATED = "created"
    CONDITION = "condition"
    PHASE = "phase"
    BOUND = "bound"
    CONTAINER_STARTED = "container_started"
    CONTAINER_ENDED = "container_ended"
    RESTARTS = "restarts"
    ENDED = "ended"
    CHECKPOINT = "checkpoint"
    GPU_FAULT = "gpu_fault"
    DELETE_REQUESTED = "delete_requested"
    GONE = "gone"


TransitionKey: TypeAlias = tuple[str, str, str, str, str, int, int | None]


class Transition(Struct, frozen=True, kw_only=True, gc=False):
    """
    An object changed at an instant.

    `at_ms` is the object's own time stamp where it has one, else when we saw the change. In the
    second case the change happened in `(earliest_ms, at_ms]`, where `earliest_ms` is the last
    time we saw the object without it; None means that the instant is a stamp. `detail` is the
    text that came with it, verbatim.
    """

    uid: str
    kind: ObjectKind
    moment: Moment
    at_ms: int
    observed_ms: int
    earliest_ms: int | None = None
    subject: str = ""
    state: str = ""
    reason: str = ""
    detail: str = ""
    amount: int | None = None

    @property
    def key(self) -> TransitionKey:
        """Two readings of one transition have the same key; a stamp makes part of it."""
        return (self.uid, self.moment, self.subject, self.state, self.reason, self.at_ms, self.amount)


class Description(Struct, frozen=True, kw_only=True, gc=False):
    """
    What an object says of itself from `from_ms` on.

    `body` is the JSON of the kind's own type in `domain.objects`. `earliest_ms` as for a
    transition: the change lies in `(earliest_ms, from_ms]`; None where it holds from creation.
    """

    uid: str
    kind: ObjectKind
    namespace: str
    name: str
    from_ms: int
    observed_ms: int
    body: bytes
    earliest_ms: int | None = None


class EventSighting(Struct, frozen=True, kw_only=True, gc=False):
    """One reading of a Kubernetes Event; `count` grows while the Event lives."""

    uid: str
    resource_version: str
    event_type: str
    reason: str
    note: str
    component: str
    regarding_kind: str
    regarding_uid: str
    regarding_namespace: str
    regarding_name: str
    related_uid: str
    first_ms: int
    last_ms: int
    count: int
    observed_ms: int


Fact: TypeAlias = Transition | Description | EventSighting


class ObjectState(Struct, frozen=True, kw_only=True, gc=False):
    """The newest reading of an object: how a later reading is told from a replayed one."""

    uid: str
    kind: ObjectKind
    namespace: str
    name: str
    resource_version: str
    seen_ms: int
    gone_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMark:
    """
    Where the reading of one kind stands; committed with the facts it stands for.

    `epoch` counts how often the cluster's history began anew (etcd restored, cluster re-made);
    `cluster_uid` is the uid of its kube-system namespace. `last_error` is empty when all is well.
    """

    kind: ObjectKind
    resource_version: str
    epoch: int
    seen_ms: int
    cluster_uid: str = ""
    last_error: str = ""
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Something that was read and not understood; kept and counted, never lost in silence."""

    source: str
    because: str
    sample: str
    observed_ms: int
    count: int = 1


@dataclass(slots=True, kw_only=True)
class Batch:
    """
    Facts of one cluster that are committed together, with the positions they stand for, and the sights.

    What is kept already of its `objects` was seen at `seen_since_ms` or later, so that the store need not
    look among older ones; 0 where that is not known.
    """

    cluster: str
    seen_since_ms: int = 0
    transitions: list[Transition] = field(default_factory=list)
    descriptions: list[Description] = field(default_factory=list)
    events: list[EventSighting] = field(default_factory=list)
    objects: dict[str, ObjectState] = field(default_factory=dict)
    marks: dict[ObjectKind, SourceMark] = field(default_factory=dict)
    sights: dict[ObjectKind, list[Stretch]] = field(default_factory=dict)
    set_aside: list[SetAside] = field(default_factory=list)

    def __len__(self) -> int:
        """Rows that will be appended."""
        return len(self.transitions) + len(self.descriptions) + len(self.events) + len(self.set_aside)


@dataclass(slots=True, kw_only=True)
class Known:
    """
    What the store already holds of one cluster: where an intake resumes.

    `keys` are those of each object's transitions in the order of arrival: which state came last
    within a second shows in no stamp.
    """

    objects: dict[str, ObjectState] = field(default_factory=dict)
    keys: dict[str, list[TransitionKey]] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    marks: dict[ObjectKind, SourceMark] = field(default_factory=dict)
