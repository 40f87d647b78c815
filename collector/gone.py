"""Objects that are gone, until they are forgotten."""

from collections import deque
from collections.abc import MutableMapping

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
        gone = [(state.gone_ms, state.uid) for state in objects.values() if state.gone_ms is not None]
        self._gone = deque(sorted(gone))

    def add(self, uid: str, gone_ms: int) -> None:
        """An object is gone since then."""
        if self._after_ms is not None:
            self._gone.append((gone_ms, uid))

    def forget(self) -> None:
        """Forget what is gone for so long; what came back in between is not gone."""
        if self._after_ms is None or not self._gone:
            return
        before_ms = self._gone[-1][0] - self._after_ms
        while self._gone[0][0] < before_ms:
            gone_ms, uid = self._gone.popleft()
            state = self._objects.get(uid)
            if state is not None and state.gone_ms == gone_ms:
                del self._objects[uid]
