"""Which running workloads a cut exposes to reclaim."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Reclaim(StrEnum):
    """Kueue's `reclaimWithinCohort` of the queues that may take borrowed quota back."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running workload: GPUs of quota that it takes, its priority, when it was admitted."""

    workload_uid: str
    gpus: int
    priority: int
    admitted_ms: int


def exposed(
    running: Sequence[Running], *, after: int, reclaim: Reclaim, preemptor_priority: int | None = None
) -> tuple[Running, ...]:
    """
    The workloads that may be preempted because usage lies above the new nominal quota.

    In Kueue's order: lowest priority first, then the newest, until usage fits; a cut turns what
    is above into borrowing.

    Args:
        running: of the queue that is cut.
        after: its nominal quota after the cut, GPUs.
        reclaim: what the other queues of the cohort may do.
        preemptor_priority: the highest priority among them, for `LowerPriority`; None if unknown,
            which leaves everybody exposed.

    Source: Kueue, `pkg/scheduler/preemption`, order of candidates.
    """
    above = sum(workload.gpus for workload in running) - after
    if reclaim is Reclaim.NEVER:
        return ()
    found = []
    for workload in sorted(running, key=lambda w: (w.priority, -w.admitted_ms, w.workload_uid)):
        safe = (
            reclaim is Reclaim.LOWER_PRIORITY
            and preemptor_priority is not None
            and workload.priority >= preemptor_priority
        )
        if above > 0 and workload.gpus > 0 and not safe:
            found.append(workload)
            above -= workload.gpus
    return tuple(found)
