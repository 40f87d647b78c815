"""What the operator should know now: each alarm has a name, and a sentence that says what to do."""

import logging
from threading import Lock

log = logging.getLogger("gpuledger.alarms")


class Alarms:
    """The alarms that sound now. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sounding: dict[str, str] = {}
        self._stopping: set[str] = set()

    def sound(self, name: str, because: str, *, stops_reading: bool = False) -> None:
        """
        Let an alarm sound until it is ended; its beginning is logged once.

        Args:
            name: what ends it again, and the label of its series.
            because: for people; may change while it sounds.
            stops_reading: nothing is read while it sounds, so we are not ready.
        """
        with self._lock:
            began = name not in self._sounding
            self._sounding[name] = because
            if stops_reading:
                self._stopping.add(name)
        if began:
            log.warning("alarm %s: %s", name, because)

    def end(self, name: str) -> None:
        """End an alarm; nothing happens where it does not sound."""
        with self._lock:
            ended = self._sounding.pop(name, None) is not None
            self._stopping.discard(name)
        if ended:
            log.info("alarm %s has ended", name)

    def sounding(self) -> dict[str, str]:
        """The reason of each alarm by its name."""
        with self._lock:
            return dict(sorted(self._sounding.items()))

    def why_not_ready(self) -> str:
        """The reasons for which nothing is read now; empty when all is well."""
        with self._lock:
            return "; ".join(self._sounding[name] for name in sorted(self._stopping))
