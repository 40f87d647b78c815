"""Members that a gang lost while the others went on: their stay was cut short, the attempt was not."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from analytics.pods import PodCourse
from domain.workload import Eviction, Outcome

# Marks on the pods of one victim that lie as close together as Kubernetes' default grace are one act. Who
# begins to end within that time of another member's loss ends because of it: a gang crashes together.
ONE_ACT_MS = 30_000


@dataclass(slots=True)
class Act:
    """Something that befell pods of an attempt: when, to which, and what it was."""

    at_ms: int
    outcome: Outcome
    victims: set[str] = field(default_factory=set)
    eviction: Eviction | None = None

    @property
    def known_ms(self) -> int:
        """From when on it is known whether the others went on."""
        return self.at_ms + ONE_ACT_MS

    def spared_others(self, pods: Iterable[PodCourse]) -> bool:
        """Whether other members went on after it, or new ones joined those that were left."""
        return any(self._went_on(pod) for pod in pods if pod.uid not in self.victims)

    def _went_on(self, pod: PodCourse) -> bool:
        if pod.bound is not None and pod.bound.at_ms > self.at_ms:
            return True
        released = pod.released.at_ms if pod.released else None
        ends = [at_ms for at_ms in (pod.delete_requested_ms, pod.ended_ms, released) if at_ms is not None]
        return not ends or min(ends) > self.known_ms


def nodes_lost(pods: Iterable[PodCourse]) -> list[Act]:
    """The loss of each node on which pods stood; without a mark on the pod nobody else tells."""
    found: dict[str, Act] = {}
    for pod in pods:
        if pod.node_gone and pod.released is not None:
            act = found.setdefault(pod.node, Act(at_ms=pod.released.at_ms, outcome=Outcome.INFRA_FAILED))
            act.victims.add(pod.uid)
    return list(found.values())
