"""Give a journal to an intake again: today's translators read what was received then."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from collector.checkpoints import ANNOTATION
from collector.decoding import UNREADABLE
from collector.intake import Intake
from collector.journal import (
    ENTRY,
    Accepted,
    Entry,
    Flushed,
    Identified,
    Listed,
    Removed,
    Seen,
    Started,
    Troubled,
    journal_files,
    number_of,
)
from collector.sink import FactSink
from collector.translator import Translator, find
from collector.unpacking import CarefulFile
from domain.errors import RecordingError
from domain.facts import ObjectKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """What came of a journal. `not_read` counts what could not be read, by the reason."""

    entries: int
    rows: int
    not_read: dict[str, int]


def replay(
    folder: Path,
    cluster: str,
    sink: FactSink,
    *,
    after_ms: Mapping[ObjectKind, int] | None = None,
    checkpoint_keys: Sequence[str] = (ANNOTATION,),
) -> ReplaySummary:
    """
    Take in the journal of a cluster.

    Args:
        folder: of the journal.
        cluster: the name under which its facts are kept.
        sink: keeps them.
        after_ms: what it already holds of each kind, up to an instant; earlier entries are left out.
        checkpoint_keys: annotations in which objects tell of checkpoints.

    Raises:
        RecordingError: the beginning is no longer there, and the sink does not hold it.
    """
    files = journal_files(folder)
    if files and number_of(files[0]) > 1 and not after_ms:
        message = (
            f"journal {folder} begins with {files[0].name}: its beginning was dropped because it may not be "
            "larger than keeping.journal_size; restore a backup, and replay from there"
        )
        raise RecordingError(message)
    player = _Player(cluster, sink, after_ms or {}, checkpoint_keys)
    for path in files:
        file = CarefulFile(path)
        for line in file:
            player.play(line)
        if file.because:
            player.not_read[file.because] += 1
    player.flush()
    return ReplaySummary(entries=player.entries, rows=player.rows, not_read=dict(player.not_read))


class _Player:
    def __init__(
        self, cluster: str, sink: FactSink, after_ms: Mapping[ObjectKind, int], checkpoint_keys: Sequence[str]
    ) -> None:
        self.entries = 0
        self.rows = 0
        self.not_read: Counter[str] = Counter()
        self._cluster = cluster
        self._sink = sink
        self._after_ms = after_ms
        self._checkpoint_keys = checkpoint_keys
        self._intake = self._begun()

    def play(self, line: bytes) -> None:
        try:
            entry: Entry = ENTRY.decode(line)
        except UNREADABLE as cause:
            self.not_read[str(cause)] += 1
            return
        self.entries += 1
        match entry:
            case Started():
                self.flush()
                self._intake = self._begun()
            case Flushed():
                self.flush()
            case Identified():
                self._intake.identify(entry.uid)
            case Seen() | Listed() | Troubled() | Accepted() | Removed():
                self._play_of_kind(entry)

    def flush(self) -> None:
        self.rows += self._intake.flush()

    def _begun(self) -> Intake:
        known = self._sink.known(self._cluster)
        # Nothing of it is known yet: as it was written it was live, whatever the clock said meanwhile.
        live = not self._after_ms
        return Intake(self._cluster, self._sink, known, checkpoint_keys=self._checkpoint_keys, live=live)

    def _play_of_kind(self, entry: Seen | Listed | Troubled | Accepted | Removed) -> None:
        translator = find(entry.group, entry.kind)
        if translator is None:
            self.not_read[f"kind {entry.kind} of group {entry.group!r}: there is no translator for it"] += 1
        elif entry.at >= self._after_ms.get(translator.kind, 0):
            _give(self._intake, translator, entry)


def _give(
    intake: Intake, translator: Translator, entry: Seen | Listed | Troubled | Accepted | Removed
) -> None:
    match entry:
        case Seen():
            intake.see(translator, entry.event, msgspec.Raw(entry.object), entry.at)
        case Listed():
            intake.relisted(translator, entry.items, entry.version, entry.at)
        case Troubled():
            intake.troubled(translator, entry.because, entry.at)
        case Accepted():
            intake.accepted(translator, entry.at)
        case Removed():
            intake.removed(translator, entry.at)
