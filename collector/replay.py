"""Give a journal to an intake again: today's translators read what was received then."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from collector.checkpoints import ANNOTATION
from collector.intake import Intake
from collector.journal import Accepted, Flushed, Identified, Listed, OfKind, Removed, Seen, Troubled
from collector.journal_reading import Course, Damage, passing, translator_of
from collector.sink import FactSink
from collector.translator import Translator
from domain.facts import ObjectKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """
    What came of a journal.

    `not_read` counts what could not be read, by the reason; `damages` say of which time entries are missing.
    """

    entries: int
    rows: int
    not_read: dict[str, int]
    damages: list[Damage]


def replay(
    folder: Path,
    cluster: str,
    sink: FactSink,
    *,
    after_ms: Mapping[ObjectKind, int] | None = None,
    checkpoint_keys: Sequence[str] = (ANNOTATION,),
    before_run: Callable[[], bool] = lambda: False,
) -> ReplaySummary:
    """
    Take in the journal of a cluster.

    Args:
        folder: of the journal.
        cluster: the name under which its facts are kept.
        sink: keeps them.
        after_ms: what it already holds of each kind, up to an instant; earlier entries are left out.
        checkpoint_keys: annotations in which objects tell of checkpoints.
        before_run: called before each run of entries without a break, when all before it is in the sink; may
            put there what the journal does not tell, and then says True.
    """
    player = _Player(cluster, sink, after_ms or {}, checkpoint_keys)
    course = Course()
    for entry, run in passing(folder, course):
        if run is not None:
            player.flush()
            if before_run() or not run.goes_on:
                player.begin()
        player.play(entry)
    player.flush()
    return ReplaySummary(
        entries=course.entries, rows=player.rows, not_read=dict(course.not_read), damages=course.damages
    )


class _Player:
    def __init__(
        self, cluster: str, sink: FactSink, after_ms: Mapping[ObjectKind, int], checkpoint_keys: Sequence[str]
    ) -> None:
        self.rows = 0
        self._cluster = cluster
        self._sink = sink
        self._after_ms = after_ms
        self._checkpoint_keys = checkpoint_keys
        self._intake: Intake | None = None

    def begin(self) -> None:
        """From here on with what the sink knows now."""
        known = self._sink.known(self._cluster)
        # Without instants from which on it is wanted, it is live as it was written, whatever the clock said.
        live = not self._after_ms
        self._intake = Intake(
            self._cluster, self._sink, known, checkpoint_keys=self._checkpoint_keys, live=live
        )

    def play(self, entry: object) -> None:
        if self._intake is None:
            return  # nothing but a start
        match entry:
            case Flushed():
                self.flush()
            case Identified():
                self._intake.identify(entry.uid)
            case Seen() | Listed() | Troubled() | Accepted() | Removed():
                translator = translator_of(entry)
                if translator is not None and entry.at >= self._after_ms.get(translator.kind, 0):
                    _give(self._intake, translator, entry)

    def flush(self) -> None:
        if self._intake is not None:
            self.rows += self._intake.flush()


def _give(intake: Intake, translator: Translator, entry: OfKind) -> None:
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
