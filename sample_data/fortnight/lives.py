"""What the simulator knows of each job and pod while it lives."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sample_data.fortnight.demand import Request
from sample_data.fortnight.machines import Device

Json = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of a pod's container; end None while it runs."""

    start_ms: int
    end_ms: int | None = None
    exit_code: int | None = None


@dataclass(slots=True, kw_only=True)
class LivePod:
    """One pod; `attempt` counts the stays of its workload on GPUs from 1."""

    uid: str
    name: str
    attempt: int
    created_ms: int
    devices: list[Device] = field(default_factory=list)
    node: str = ""
    bound_ms: int | None = None
    released_ms: int | None = None
    drained_from_ms: int | None = None
    deletion_ms: int | None = None
    phase: str = "Pending"
    ready: bool = False
    restarts: int = 0
    refused: bool = False
    lost: bool = False
    checkpoint_ms: int | None = None
    conditions: list[Json] = field(default_factory=list)
    state: Json = field(default_factory=dict)
    last_state: Json = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it has its GPUs now."""
        return self.bound_ms is not None and self.released_ms is None


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One stay on GPUs, and how it ended."""

    number: int
    complete_ms: int | None = None
    outcome: str = "open"


@dataclass(slots=True, kw_only=True)
class Life:
    """
    One workload: a Job with its Kueue Workload and pods, or a bare pod.

    `waits` are its queueing episodes, each up to its placement or the end. `saved_ms` is how much of
    its work its last checkpoint saved.
    """

    request: Request
    uid: str
    job_uid: str
    workload_name: str
    submitted_ms: int
    team: str
    queue: str
    pods: list[LivePod] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    waits: list[tuple[int, int | None]] = field(default_factory=list)
    suspended: bool = True
    creating: bool = False
    draining: bool = False
    gone: bool = False
    admitted_ms: int | None = None
    job_started_ms: int | None = None
    complete_ms: int | None = None
    crashed: int = 0
    job_conditions: list[Json] = field(default_factory=list)
    conditions: list[Json] = field(default_factory=list)
    evicted: int = 0
    victims: int = 0
    past_execution_seconds: int = 0
    saved_ms: int = 0
    checkpoints_ms: list[int] = field(default_factory=list)
    first_running_ms: int | None = None
    ended_ms: int | None = None
    outcome: str = "open"
    preemptions: list[Json] = field(default_factory=list)

    @property
    def bare(self) -> bool:
        """A pod that no Kueue queue knows."""
        return not self.queue

    @property
    def attempt(self) -> int:
        """The number of the attempt that was begun last."""
        return len(self.attempts)

    @property
    def may_be_evicted(self) -> bool:
        """Whether Kueue can throw it out now."""
        settled = not (self.creating or self.draining or self.gone)
        return settled and not any(pod.lost for pod in self.current())

    def current(self) -> Iterator[LivePod]:
        """The pods of this attempt."""
        return (pod for pod in self.pods if pod.attempt == self.attempt)

    def waits_from(self, at_ms: int) -> None:
        """It begins to wait."""
        self.waits.append((at_ms, None))

    def waits_until(self, at_ms: int) -> None:
        """It waits no longer, if it did."""
        if self.waits and self.waits[-1][1] is None:
            self.waits[-1] = (self.waits[-1][0], at_ms)
