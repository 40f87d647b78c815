"""What would shorten waiting most: the blocker with most hours, and what could be done about it by a site."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from analytics.why.reason import Reason
from analytics.why.timeline import NOT_EVALUATED

# What whoever runs the queue or the cluster could do; what its owner can do is in each answer.
RELIEF: Final[Mapping[Reason, str]] = {
    Reason.HELD_BY_OWNER: "ask its owner, or who stopped the queue, to let it go",
    Reason.GATED: "ask whoever owns the scheduling gate when it goes",
    Reason.MISCONFIGURED: "mend, or tell the owner: it never starts as it is",
    Reason.NEVER_FITS: "tell the owner: it never starts as it is, and holds a place in the queue",
    Reason.BACKOFF: "look at why it fails",
    Reason.ADMISSION_CHECK: "decide sooner on the admission check",
    Reason.PREEMPTING: "shorten the grace period of preemptible work",
    Reason.QUOTA_EXHAUSTED: "raise the queue's quota, or let it borrow what others do not use",
    Reason.BORROWING_LIMIT: "raise its borrowing limit",
    Reason.COHORT_EXHAUSTED: "give the cohort quota, or let owners of lent quota take it back",
    Reason.BEHIND_IN_QUEUE: "let others pass its head (BestEffortFIFO), or let less in ahead of it",
    Reason.GANG_INCOMPLETE: "look at why pods of the gang are missing: their controller, or a quota of pods",
    Reason.NODE_UNAVAILABLE: "bring back the nodes that take no pods",
    Reason.CONSTRAINT: "let its pods bear the taint, or drop the constraint",
    Reason.OTHER_RESOURCE: "ask less CPU and memory with each GPU",
    Reason.FRAGMENTATION: "pack small work on few nodes: `gpuledger report fragmentation`",
    Reason.GPU_SHORTAGE: "nothing but more GPUs, or less waste: `gpuledger report capacity`",
    Reason.STARTING: "look at images and volumes that are slow to come",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Hours that one blocker cost a queue, of all that it waited; `blocker` may be empty."""

    queue: str
    reason: str
    blocker: str
    hours: float
    of_hours: float

    @property
    def relief(self) -> str:
        """What could be done about it; empty where nobody looked, or nobody knows."""
        known = self.reason in Reason.__members__
        return RELIEF.get(Reason(self.reason), "") if known else ""


def most_costly(hours: Iterable[tuple[str, str, str, float]]) -> list[Share]:
    """
    The blocker with most hours of each queue, the queue that waited longest first.

    Time in which nobody looked is part of a queue's hours, and no blocker.

    Args:
        hours: of each queue, reason and blocker; in any order.

    >>> [one] = most_costly([("red", "QUOTA_EXHAUSTED", "queue red", 3.0), ("red", "BACKOFF", "", 1.0)])
    >>> one.reason, one.hours, one.of_hours, one.relief[:15]
    ('QUOTA_EXHAUSTED', 3.0, 4.0, 'raise the queue')
    """
    by_queue: dict[str, list[tuple[float, str, str]]] = {}
    total: dict[str, float] = {}
    for queue, reason, blocker, amount in hours:
        total[queue] = total.get(queue, 0.0) + amount
        if reason != NOT_EVALUATED and amount > 0:
            by_queue.setdefault(queue, []).append((-amount, reason, blocker))
    found = [
        Share(queue=queue, reason=reason, blocker=blocker, hours=-amount, of_hours=total[queue])
        for queue, each in by_queue.items()
        for amount, reason, blocker in [min(each)]
    ]
    return sorted(found, key=lambda one: (-one.of_hours, one.queue))
