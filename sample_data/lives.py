"""What the simulator knows of each job and pod while it lives, and the truth that is left of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sample_data.demand import Request
from sample_data.site import gpu_share
from sample_data.stamps import MS_PER_SECOND

Json = dict[str, Any]
_SERVICE_CLASSES = {
    "interactive": "interactive",
    "training": "batch",
    "batch": "batch",
    "best-effort": "best_effort",
}


@dataclass(slots=True, kw_only=True)
class LivePod:
    """One pod; `number` counts attempts of its workload from 1."""

    uid: str
    name: str
    attempt: int
    created_ms: int
    node: str = ""
    bound_ms: int | None = None
    pulling_ms: int | None = None
    first_started_ms: int | None = None
    started_ms: int | None = None
    released_ms: int | None = None
    deletion_ms: int | None = None
    phase: str = "Pending"
    ready: bool = False
    restarts: int = 0
    refusals: int = 0
    gates: list[str] = field(default_factory=list)
    conditions: list[Json] = field(default_factory=list)
    state: Json = field(default_factory=dict)
    last_state: Json = field(default_factory=dict)
    runs: list[tuple[int, int | None]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it has its GPUs now."""
        return self.bound_ms is not None and self.released_ms is None


@dataclass(slots=True, kw_only=True)
class Life:
    """One workload: a Job with its Kueue Workload and pods, or a bare pod."""

    request: Request
    uid: str
    job_uid: str
    workload_name: str
    submitted_ms: int
    pods: list[LivePod] = field(default_factory=list)
    attempt: int = 0
    suspended: bool = True
    pending: bool = False
    draining: bool = False
    gone: bool = False
    admitted_ms: int | None = None
    job_started_ms: int | None = None
    complete_ms: int | None = None
    counted: str = ""
    job_conditions: list[Json] = field(default_factory=list)
    conditions: list[Json] = field(default_factory=list)
    evicted: int = 0
    past_execution_seconds: int = 0
    preempting: bool = False
    queued_ms: list[int] = field(default_factory=list)
    placed_ms: list[int] = field(default_factory=list)
    first_running_ms: int | None = None
    ended_ms: int | None = None
    outcome: str = "open"
    preemptions: list[Json] = field(default_factory=list)

    @property
    def bare(self) -> bool:
        """A pod that no Kueue queue knows."""
        return not self.request.queue

    def current(self) -> Iterator[LivePod]:
        """The pods of this attempt that still exist."""
        return (pod for pod in self.pods if pod.attempt == self.attempt)

    def waits_ms(self, end_ms: int) -> list[int]:
        """How long each queueing episode lasted; the last one up to the end if it is open."""
        ends = [*self.placed_ms, min(self.ended_ms or end_ms, end_ms)]
        return [until_ms - since_ms for since_ms, until_ms in zip(self.queued_ms, ends, strict=False)]

    def truth(self, end_ms: int) -> Json:
        """What happened to it, from the simulator's own state."""
        request = self.request
        share = gpu_share(request.resource) * request.gpus
        pods = [pod for pod in self.pods if pod.bound_ms is not None]
        waits = self.waits_ms(end_ms)
        return {
            "uid": self.uid,
            "namespace": request.team,
            "name": request.name,
            "kind": "Pod" if self.bare else "Job",
            "team": request.team,
            "user": request.user,
            "priority_class": request.priority_class,
            "service_class": _SERVICE_CLASSES[request.priority_class],
            "mark": request.mark,
            "gpus": share * request.pods,
            "submitted": _seconds(self.submitted_ms),
            "bound": _seconds(self.placed_ms[0]) if self.placed_ms else None,
            "first_running": _seconds(self.first_running_ms),
            "ended": _seconds(self.ended_ms),
            "outcome": self.outcome,
            "waits": [wait / MS_PER_SECOND for wait in waits],
            "preemptions": self.preemptions,
            "gpu_seconds": sum(
                share * ((pod.released_ms or end_ms) - (pod.bound_ms or 0)) / MS_PER_SECOND for pod in pods
            ),
            "pods": [
                {
                    "uid": pod.uid,
                    "name": pod.name,
                    "node": pod.node,
                    "gpus": share,
                    "bound": _seconds(pod.bound_ms),
                    "runs": [[_seconds(since_ms), _seconds(until_ms)] for since_ms, until_ms in pod.runs],
                    "released": _seconds(pod.released_ms),
                    "restarts": pod.restarts,
                }
                for pod in pods
            ],
        }


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / MS_PER_SECOND
