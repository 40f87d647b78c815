"""Objects that are gone, until they are forgotten."""

from collections.abc import MutableMapping
from heapq import heapify, heappop, heappush

from domain.facts import ObjectState


class Gone:
    """
    Forgets what is gone for long, so that memory holds what a cluster has and not what it ever had.

    Args:
        after_ms: how long a state of what is gone is kept: a watch may tell of it once more. A recording may
            be read again from its beginning, so None forgets nothing.
        objects: the states, by uid.
    """

    def __init__(self, after_ms: int | None, objects: MutableMapping[str, ObjectState]) -> None:
        self._after_ms = after_ms
        self._objects = objects
        # The earliest end first: one that was stamped by a clock far ahead holds up no other.
        self._gone = [(state.gone_ms, state.uid) for state in objects.values() if state.gone_ms is not None]
        heapify(self._gone)
        self._newest_ms: int | None = None

    def add(self, uid: str, gone_ms: int) -> None:
        """An object is gone since then."""
        if self._after_ms is not None:
            heappush(self._gone, (gone_ms, uid))
            self._newest_ms = gone_ms

    def forget(self) -> None:
        """Forget what is gone for so long; what came back in between is not gone."""
        if self._after_ms is None or self._newest_ms is None:
            return
        before_ms = self._newest_ms - self._after_ms
        while self._gone and self._gone[0][0] < before_ms:
            gone_ms, uid = heappop(self._gone)
            state = self._objects.get(uid)
            if state is not None and state.gone_ms == gone_ms:
                del self._objects[uid]
