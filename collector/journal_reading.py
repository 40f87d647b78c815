"""Read a journal in order, and say of which instants it tells and where it does not."""

import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from collector.decoding import UNREADABLE
from collector.journal import (
    ENTRY,
    Accepted,
    Broken,
    Entry,
    Listed,
    OfKind,
    Removed,
    Seen,
    Started,
    Troubled,
    journal_files,
    name_of,
    number_of,
)
from collector.translator import Translator, find
from domain.facts import ObjectKind, SourceMark
from domain.window import format_instant

_PACKED_BYTES: Final = 1 << 14
_HELD_BYTES: Final = 256 << 20


class JournalFile:
    """
    The lines of a file of a journal, up to its end or to a block that is not whole: then `broken` says how.

    No line of a block is given before its checksum is found right; but of a block that is larger than what
    one commit writes, it is not waited for.
    """

    def __init__(self, path: Path) -> None:
        self.broken: Broken | None = None
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        """The lines, without their ends."""
        rest = b""
        try:
            with self._path.open("rb") as file:
                for text in _blocks(file):
                    *lines, rest = (rest + text).split(b"\n")
                    yield from lines
        except (OSError, EOFError, zlib.error) as cause:
            because = f"{self._path.name} is cut off or broken: {cause}"
            self.broken = Broken(because, by_kill=isinstance(cause, EOFError))


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """What each block holds; a block is a member of a gzip file."""
    packed = file.read(_PACKED_BYTES)
    while packed:
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        held, size = [], 0
        while not member.eof:
            if not packed and not (packed := file.read(_PACKED_BYTES)):
                message = "its last block was not written to the end"
                raise EOFError(message)
            held.append(member.decompress(packed))
            size += len(held[-1])
            packed = b""
            if size > _HELD_BYTES:
                yield b"".join(held)
                held, size = [], 0
        yield b"".join(held)
        packed = member.unused_data or file.read(_PACKED_BYTES)


@dataclass(slots=True)
class Damage:
    """
    Where entries are missing: after one instant, before another; None where there is no entry on that side.

    `by_kill` as in `Broken`.
    """

    because: str
    by_kill: bool
    after_ms: int | None
    before_ms: int | None = None

    def words(self) -> str:
        """
        What cannot be read, and of which time.

        >>> Damage("00000002.ndjson.gz missing", False, 0).words()
        '00000002.ndjson.gz missing: it tells nothing after 1970-01-01T00:00:00.000Z'
        """
        edges = (("after", self.after_ms), ("before", self.before_ms))
        span = [f"{word} {format_instant(at)}" for word, at in edges if at is not None]
        return f"{self.because}: it tells nothing {' and '.join(span) or 'of that time'}"


@dataclass(slots=True)
class Run:
    """
    Entries without a break: what an intake was given between its start and its end.

    `first_ms` is their first instant, `marks` what the store held when it started, where that is written.
    One that `goes_on` begins with a file that the same intake filled: most likely nothing is missing.
    """

    first_ms: int | None = None
    goes_on: bool = False
    marks: Mapping[ObjectKind, SourceMark] = field(default_factory=dict)


class Course:
    """
    What a journal tells, gathered while its entries pass.

    `instants` are those of which it tells, by kind; `doubtful` those beside a damage, of which it may tell
    in part; `ends` those at which a file ends, of which it most likely tells all. `not_read` counts what
    made no sense, by the reason.
    """

    def __init__(self) -> None:
        self.entries = 0
        self.instants: dict[ObjectKind, array[int]] = {}
        self.doubtful: set[int] = set()
        self.ends: set[int] = set()
        self.damages: list[Damage] = []
        self.not_read: Counter[str] = Counter()
        self.runs: list[Run] = []
        self._last_ms: int | None = None
        self._next_run: Run | None = Run()
        # A journal whose beginning was dropped begins anywhere.
        self._is_doubtful = True

    def begins_with(self, entry: Entry) -> Run | None:
        """Let an entry pass; gives the run that begins with it, if one does."""
        if isinstance(entry, Broken):
            self._broken(entry)
            return None
        self.entries += 1
        if isinstance(entry, Started):
            self._is_doubtful = self._is_doubtful and bool(self.entries > 1 or self.damages)
            self._next_run = Run(marks=entry.marks)
            return None
        begun = self._next_run
        if begun is not None:
            self._next_run = None
            self.runs.append(begun)
        if isinstance(entry, OfKind):
            self._pass(entry)
        return begun

    def file_ends(self) -> None:
        """The end of a file passes: it may have had further blocks, and no sign of that is left."""
        if self._last_ms is not None:
            self.ends.add(self._last_ms)
        self._next_run = self._next_run or Run(goes_on=True)

    def unread(self, because: str) -> None:
        """What passed made no sense, and may have been of the instants around it."""
        self.not_read[because] += 1
        self._doubt()

    def _broken(self, entry: Broken) -> None:
        self.not_read[entry.because] += 1
        self.damages.append(Damage(entry.because, entry.by_kill, self._last_ms))
        self._doubt()
        if self._next_run is None or self._next_run.goes_on:
            self._next_run = Run()

    def _doubt(self) -> None:
        self._is_doubtful = True
        if self._last_ms is not None:
            self.doubtful.add(self._last_ms)

    def _pass(self, entry: OfKind) -> None:
        if self._is_doubtful:
            self.doubtful.add(entry.at)
            self._is_doubtful = False
        for damage in reversed(self.damages):
            if damage.before_ms is not None:
                break
            damage.before_ms = entry.at
        for run in reversed(self.runs):
            if run.first_ms is not None:
                break
            run.first_ms = entry.at
        self._last_ms = entry.at
        translator = translator_of(entry)
        if translator is None:
            self.not_read[f"kind {entry.kind} of group {entry.group!r}: there is no translator for it"] += 1
        # From the others comes no fact.
        elif isinstance(entry, Seen | Listed | Removed):
            instants = self.instants.setdefault(translator.kind, array("q"))
            if not instants or instants[-1] != entry.at:
                instants.append(entry.at)


def translator_of(entry: Seen | Listed | Troubled | Accepted | Removed) -> Translator | None:
    """Who reads it; None where nobody does any more."""
    return find(entry.group, entry.kind)


def passing(folder: Path, course: Course) -> Iterator[tuple[Entry, Run | None]]:
    """The entries of a journal in order, each with the run that begins with it; `course` gathers them."""
    before: Path | None = None
    for path in journal_files(folder):
        if before is not None and number_of(path) > number_of(before) + 1:
            missing = [name_of(number) for number in range(number_of(before) + 1, number_of(path))]
            entry = Broken(f"{' to '.join(sorted({missing[0], missing[-1]}))} missing")
            yield entry, course.begins_with(entry)
        before = path
        file = JournalFile(path)
        for line in file:
            try:
                read: Entry = ENTRY.decode(line)
            except UNREADABLE as cause:
                course.unread(str(cause))
                continue
            yield read, course.begins_with(read)
        if file.broken is not None:
            yield file.broken, course.begins_with(file.broken)
        course.file_ends()


def course_of(folder: Path) -> Course:
    """What the journal in a folder tells."""
    course = Course()
    for _ in passing(folder, course):
        pass
    return course
