"""For whom a question is answered, where not everything may be seen."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The viewer's teams, and the queues and pools, each with its cluster, in which these teams stand."""

    teams: AbstractSet[str]
    queues: AbstractSet[tuple[str, str]] = frozenset()
    pools: AbstractSet[tuple[str, str]] = frozenset()

    def shares(self, label: str, cluster: object, name: object) -> bool:
        """Whether the viewer's teams stand in that queue or pool; nothing else is shared."""
        shared = {"queue": self.queues, "pool": self.pools}.get(label, frozenset[tuple[str, str]]())
        return (str(cluster), str(name)) in shared
