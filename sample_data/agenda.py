"""What happens when."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

Action: TypeAlias = Callable[[int], None]


@dataclass(slots=True)
class Agenda:
    """Planned actions in order of their instants; of equal instants what was planned first."""

    _heap: list[tuple[int, int, Action]] = field(default_factory=list)
    _order: "count[int]" = field(default_factory=count)

    def at(self, at_ms: int, action: Action) -> None:
        """Plan something; it is called with its instant."""
        heapq.heappush(self._heap, (at_ms, next(self._order), action))

    def run(self, end_ms: int) -> None:
        """Let everything happen that lies before the end."""
        while self._heap and self._heap[0][0] < end_ms:
            at_ms, _, action = heapq.heappop(self._heap)
            action(at_ms)
