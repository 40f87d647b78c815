"""The unit of queueing and its life: workload, spans, attempts, holdings, evictions."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

WorkloadUid = NewType("WorkloadUid", str)
TeamName = NewType("TeamName", str)


class State(StrEnum):
    """Where a workload stands; the order is that of a life without trouble."""

    HELD = "held"
    QUEUED = "queued"
    CHECKING = "checking"
    PLACING = "placing"
    STARTING = "starting"
    RUNNING = "running"
    BACKOFF = "backoff"
    DRAINING = "draining"
    ENDED = "ended"

    @property
    def waits(self) -> bool:
        """Whether the workload wants to go on and cannot: the time that counts as waiting."""
        return self in WAITING_STATES


WAITING_STATES = frozenset({State.QUEUED, State.CHECKING, State.PLACING})


class ServiceClass(StrEnum):
    """What a workload was promised. Unclassified work is shown, and alerted on as batch."""

    INTERACTIVE = "interactive"
    BATCH = "batch"
    BEST_EFFORT = "best_effort"
    UNCLASSIFIED = "unclassified"


class Outcome(StrEnum):
    """How an attempt or a workload ended; open while it has not."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    INFRA_FAILED = "infra_failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class Mechanism(StrEnum):
    """Who threw a workload out, or the rule by which it was."""

    KUEUE_IN_CLUSTER_QUEUE = "kueue_in_cluster_queue"
    KUEUE_RECLAIM = "kueue_reclaim"
    KUEUE_FAIR_SHARING = "kueue_fair_sharing"
    KUEUE_RECLAIM_WHILE_BORROWING = "kueue_reclaim_while_borrowing"
    KUEUE_OTHER = "kueue_other"
    KUBE_SCHEDULER = "kube_scheduler"
    VOLCANO = "volcano"
    TAINT = "taint"
    EVICTION_API = "eviction_api"
    POD_GC = "pod_gc"
    KUBELET = "kubelet"
    BATCH_SCHEDULER = "batch_scheduler"
    NODE_FAILURE = "node_failure"
    REQUEUED = "requeued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """
    A piece of a workload's life in one state, `[start_ms, end_ms)`; end None while it lasts.

    `first_wait` marks waiting before the first placement: the sum of these is the queue wait.
    `start_earliest_ms` is set where the start is only known to lie in (earliest, start].
    """

    state: State
    start_ms: int
    end_ms: int | None
    reason: str = ""
    first_wait: bool = False
    start_earliest_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a pod's main containers; `exit_code` is the worst, None while unknown."""

    start_ms: int
    end_ms: int | None
    exit_code: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """
    A pod's stay on its node: it holds its GPUs in `[bound_ms, released_ms)`.

    `attempt` numbers the workload's attempts from 1. `started_ms` is when its main containers
    first all ran. `micro_gpus` is None where it cannot be known (an unknown MIG card).
    `bound_source` is what told of the binding: the pod's `condition`, the scheduler's `event`, or
    `sight`, when we only saw the pod without a node and then with one. `cut` is the outcome of a member
    that was lost while the others went on, known since `cut_known_ms`; empty for all others. `milli_cpus`
    and `memory_bytes` are what it asks of them, `other_asks` of all else beside GPUs, as JSON by resource
    name; None and empty where nobody tells. `nodes` is told by tables of other schedulers, where a pod is a
    whole stay; else None.
    """

    pod_uid: str
    pod_name: str
    attempt: int
    node: str
    gpu_model: str
    micro_gpus: int | None
    bound_ms: int
    bound_earliest_ms: int | None
    bound_source: str
    started_ms: int | None
    released_ms: int | None
    released_earliest_ms: int | None
    phase: str
    restarts: int
    runs: tuple[Run, ...] = ()
    cut: str = ""
    cut_known_ms: int | None = None
    milli_cpus: int | None = None
    nodes: int | None = None
    memory_bytes: int | None = None
    other_asks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One stay on GPUs, from the first bound pod to the last released pod."""

    number: int
    start_ms: int
    end_ms: int | None
    outcome: Outcome
    reason: str = ""
    preempted_by: str = ""
    source: str = "pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """
    A workload was thrown out; `preempted` when another one took its place.

    `attempt` is 0 when it held nothing. `missed` counts evictions that only a counter tells of:
    they happened, nobody saw when, and no attempt is made up for them.
    """

    at_ms: int
    preempted: bool
    reason: str
    mechanism: Mechanism
    preemptor_uid: str
    attempt: int
    missed: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberWait:
    """A member lost after the first placement, or a further pod of a job without a gang, waits."""

    pod_uid: str
    start_ms: int
    end_ms: int | None
    micro_gpus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Everything that facts say of one workload's course."""

    submitted_ms: int
    first_placed_ms: int | None
    first_running_ms: int | None
    ended_ms: int | None
    ended_earliest_ms: int | None
    outcome: Outcome
    spans: tuple[Span, ...]
    attempts: tuple[Attempt, ...]
    holdings: tuple[Holding, ...]
    evictions: tuple[Eviction, ...]
    member_waits: tuple[MemberWait, ...] = ()
    skewed: tuple[str, ...] = field(default=())
