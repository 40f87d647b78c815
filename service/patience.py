"""
A sink that waits for room: a full disk pauses the reading, and nothing acknowledged is lost.

The readers of a cluster wait in `append`, so their watches are not read either: the API servers
hold back, and in the end close. When there is room again, everything goes on by itself.
"""

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from domain.errors import StoreBrokenError, StoreError
from domain.facts import Batch, Known
from service.alarms import Alarms
from service.forgotten import Forgotten
from store.embedded import Store

DISK = "disk_full"
STORE = "store_broken"
JOURNAL = "journal_not_written"
# Somewhat more than at the pause, so that the two do not take turns.
_RESUME_RATIO = 1.1


@dataclass(frozen=True, slots=True)
class Room:
    """The room that is left in a folder, and how much of it is not ours to take."""

    folder: Path
    reserved_bytes: int
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free

    def lacks(self, *, paused: bool) -> str:
        """Why there is no room; empty when there is."""
        free = self.free_bytes(self.folder)
        if free >= self.reserved_bytes * (_RESUME_RATIO if paused else 1):
            return ""
        return (
            f"{self.folder} has {free / 1e6:,.0f} MB free, less than {self.reserved_bytes / 1e6:,.0f} MB: "
            "reading clusters pauses until there is more; make room, or lower keeping.min_free"
        )


class PatientSink:
    """
    Keeps facts in a store, and does not return before they are there.

    Args:
        store: where they go.
        room: looked at before each batch.
        alarms: say why it waits.
        stop: ends the waiting; what was not acknowledged is read again later.
        forgotten: names that stay out of the store.
        before: done before a batch is committed, for example to write it to the journal; may raise
            OSError, and is then done again with it.
        pause_seconds: between two looks.
    """

    def __init__(  # noqa: PLR0913 - everything that it uses is given to it
        self,
        store: Store,
        *,
        room: Room,
        alarms: Alarms,
        stop: threading.Event,
        forgotten: Forgotten | None = None,
        before: Callable[[], None] = lambda: None,
        pause_seconds: float = 1.0,
    ) -> None:
        self._store = store
        self._room = room
        self._alarms = alarms
        self._stop = stop
        self._forgotten = forgotten
        self._before = before
        self._pause_seconds = pause_seconds

    def known(self, cluster: str) -> Known:
        """As the store's."""
        return self._store.known(cluster)

    def append(self, batch: Batch) -> int:
        """
        Commit a batch, as often as it takes.

        Raises:
            StoreError: the batch itself is refused, or we were told to stop while it waited.
        """
        if not (len(batch) or batch.objects or batch.marks):
            return 0
        if self._forgotten is not None:
            batch = self._forgotten.without(batch)
        self._wait_for_room()
        broken = False
        while True:
            try:
                appended = self._append(batch, again=broken)
            except (StoreBrokenError, OSError) as cause:
                of_store = isinstance(cause, StoreBrokenError)
                broken |= of_store
                self._alarms.sound(
                    STORE if of_store else JOURNAL,
                    f"{cause}; trying again, nothing acknowledged is lost",
                    stops_reading=True,
                )
                self._wait(str(cause))
                self._wait_for_room()
                continue
            self._alarms.end(STORE)
            self._alarms.end(JOURNAL)
            return appended

    def _append(self, batch: Batch, *, again: bool) -> int:
        if again:
            self._store.reopen()
            # The commit may have been the last thing that the file was told.
            if self._store.holds(batch):
                return len(batch)
        self._before()
        return self._store.append(batch)

    def _wait_for_room(self) -> None:
        paused = False
        while lacking := self._room.lacks(paused=paused):
            paused = True
            self._alarms.sound(DISK, lacking, stops_reading=True)
            self._wait(lacking)
        self._alarms.end(DISK)

    def _wait(self, because: str) -> None:
        if self._stop.wait(self._pause_seconds):
            message = f"stopped while a batch waited, it will be read again: {because}"
            raise StoreError(message)
