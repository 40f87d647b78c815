"""
A sink that waits for room: a full disk pauses the reading, and nothing acknowledged is lost.

There is one disk, and one alarm about it. What fails while one cluster is read has an alarm with that
cluster's name, which only its own success ends.

The readers of a cluster wait in `append`, so their watches are not read either: the API servers
hold back, and in the end close. When there is room again, everything goes on by itself.
"""

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Room:
    """
    The room that is left in a folder, and how much of it is not ours to take.

    Everybody who writes there asks the same one, from any thread.
    """

    folder: Path
    reserved_bytes: int
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free
    _paused: bool = field(default=False, init=False)
    _looking: threading.Lock = field(default_factory=threading.Lock, init=False)

    def lacking(self, alarms: Alarms) -> str:
        """Look: why there is no room, which an alarm says until there is; empty when there is."""
        with self._looking:
            free = self.free_bytes(self.folder)
            self._paused = free < self.reserved_bytes * (_RESUME_RATIO if self._paused else 1)
            if not self._paused:
                alarms.end(DISK)
                return ""
            because = (
                f"{self.folder} has {free / 1e6:,.0f} MB free, less than {self.reserved_bytes / 1e6:,.0f} "
                "MB: reading pauses until there is more; make room, or lower keeping.min_free"
            )
            alarms.sound(DISK, because, stops_reading=True)
            return because


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
        # Sights alone count too: that nothing happened was seen.
        if not (len(batch) or batch.objects or batch.marks or batch.sights):
            return 0
        if self._forgotten is not None:
            batch = self._forgotten.without(batch)
        self._wait_for_room()
        broken = False
        of_store, of_journal = f"{STORE}/{batch.cluster}", f"{JOURNAL}/{batch.cluster}"
        while True:
            try:
                appended = self._append(batch, again=broken)
            except (StoreBrokenError, OSError) as cause:
                is_of_store = isinstance(cause, StoreBrokenError)
                broken |= is_of_store
                self._alarms.sound(
                    of_store if is_of_store else of_journal,
                    f"cluster {batch.cluster}: {cause}; trying again, nothing acknowledged is lost",
                    stops_reading=True,
                )
                self._wait(str(cause))
                self._wait_for_room()
                continue
            self._alarms.end(of_store)
            self._alarms.end(of_journal)
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
        while lacking := self._room.lacking(self._alarms):
            self._wait(lacking)

    def _wait(self, because: str) -> None:
        if self._stop.wait(self._pause_seconds):
            message = f"stopped while a batch waited, it will be read again: {because}"
            raise StoreError(message)
