"""
Recordings of a cluster: what its API server answered, byte for byte, in a folder of files.

For each kind NAME: `NAME.list.json` is the answer to a LIST, `NAME.watch.ndjson` the WATCH stream
that follows it, one event a line, and `NAME.times` the instant at which each line was received, in
epoch seconds. Each may be compressed, as `.gz`, `.xz` or `.zst`. The streams are read side by side in the
order in which they were received, and never as a whole: they may be larger than memory.
"""

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from collector.aside import AsideOnce
from collector.checkpoints import ANNOTATION
from collector.decoding import UNREADABLE, Head, Line, ObjectList, read_object
from collector.intake import Intake
from collector.sink import FactSink, RecordingSink
from collector.translator import TRANSLATORS, Translator, find
from collector.unpacking import CarefulFile
from collector.wording import api_group
from domain.errors import RecordingError
from domain.facts import Batch, Known, ObjectKind

_FILE = re.compile(r"(?P<name>.+)\.(?P<part>list\.json|watch\.ndjson|times)(?:\.gz|\.xz|\.zst)?")
_PROGRESS_LINES = 1_000
_ORDER = {translator.kind: place for place, translator in enumerate(TRANSLATORS)}


class Part(StrEnum):
    """What a reading of a recording is."""

    LIST = "list"
    LINE = "line"
    CUT = "cut"
    UNTIMED = "untimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The files of one kind."""

    name: str
    translator: Translator
    list_file: Path | None
    watch_file: Path | None
    times_file: Path | None


class Reading(NamedTuple):
    """
    A piece of a recording, at the instant at which it was received.

    A CUT says, in `data`, why the rest of a stream cannot be read, and `lines` how long it is; UNTIMED why
    a line of it cannot.
    """

    observed_ms: int
    stream: Stream
    part: Part
    data: bytes
    lines: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """
    What an import took in: watch lines read and rows appended.

    `set_aside` counts what was not understood by source and reason; `not_read` names streams that
    were left out, with the reason; `cut` says which files end before their end, and where.
    """

    lines: int
    transitions: int
    descriptions: int
    events: int
    set_aside: dict[str, int]
    not_read: dict[str, str]
    cut: tuple[str, ...]
    seconds: float


def import_recording(
    folder: Path,
    cluster: str,
    sink: RecordingSink,
    progress: Callable[[int], None] | None = None,
    *,
    checkpoint_keys: Sequence[str] = (ANNOTATION,),
) -> ImportSummary:
    """
    Take in a recording; doing it again changes nothing.

    Args:
        folder: holds the recording.
        cluster: the name under which its facts are kept.
        sink: keeps them.
        progress: told the number of lines read so far, now and then.
        checkpoint_keys: annotations in which objects tell of checkpoints.

    Raises:
        RecordingError: the folder holds no recording.
    """
    began = perf_counter()
    counted = _Counted(sink)
    aside = AsideOnce(sink.set_aside_of(cluster))
    intake = Intake(cluster, counted, sink.known(cluster), checkpoint_keys=checkpoint_keys, aside=aside)
    streams, not_read = streams_in(folder)
    lines = 0
    cut: list[str] = []
    for reading in _merged(streams):
        if because := deliver(intake, reading):
            cut.append(because)
        lines += reading.part is Part.LINE
        if progress is not None and lines % _PROGRESS_LINES == 0:
            progress(lines)
    intake.flush()
    if progress is not None:
        progress(lines)
    return ImportSummary(
        lines=lines,
        transitions=counted.rows["transitions"],
        descriptions=counted.rows["descriptions"],
        events=counted.rows["events"],
        set_aside={f"{source}: {because}": count for (source, because), count in aside.seen.items()},
        not_read=not_read,
        cut=tuple(cut),
        seconds=perf_counter() - began,
    )


def readings(folder: Path) -> Iterator[Reading]:
    """
    The pieces of a recording in the order of their receipt; lists come first.

    Raises:
        RecordingError: the folder holds no recording.
    """
    return _merged(streams_in(folder)[0])


def deliver(intake: Intake, reading: Reading) -> str:
    """Give a reading to the intake; gives why the rest of its file is missing, if it is."""
    stream, observed_ms = reading.stream, reading.observed_ms
    match reading.part:
        case Part.LINE:
            intake.see_line(stream.translator, reading.data, observed_ms)
        case Part.LIST:
            try:
                listed = read_object(reading.data, ObjectList)
            except UNREADABLE as cause:
                intake.set_aside(f"{stream.name}.list.json", str(cause), reading.data, observed_ms)
                return f"{stream.name}.list.json is no list of objects: {cause}"
            version = listed.metadata.resource_version or ""
            intake.relisted(stream.translator, listed.items or (), version, observed_ms)
        case Part.CUT | Part.UNTIMED:
            because = reading.data.decode()
            intake.set_aside(stream.name, because, b"", observed_ms, count=reading.lines)
            return because if reading.part is Part.CUT else ""
    return ""


def streams_in(folder: Path) -> tuple[list[Stream], dict[str, str]]:
    """
    The streams of a recording that we read, and those that we do not, with the reason.

    Raises:
        RecordingError: the folder holds no list and no watch stream.
    """
    files: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if found := _FILE.fullmatch(path.name):
            files.setdefault(found["name"], {})[found["part"]] = path
    streams: list[Stream] = []
    not_read: dict[str, str] = {}
    for name, parts in files.items():
        list_file, watch_file = parts.get("list.json"), parts.get("watch.ndjson")
        if list_file is None and watch_file is None:
            continue
        group, api_kind = _kind_in(list_file, watch_file)
        translator = find(group, api_kind)
        if translator is None:
            what = f"kind {api_kind} of group {group!r}" if api_kind else "no object that says its kind"
            not_read[name] = f"{what}: there is no translator for it"
            continue
        times_file = parts.get("times")
        streams.append(
            Stream(
                name=name,
                translator=translator,
                list_file=list_file,
                watch_file=watch_file,
                times_file=times_file,
            )
        )
    if not streams and not not_read:
        message = f"{folder}: expected a recording, files like pods.list.json.gz and pods.watch.ndjson.gz"
        raise RecordingError(message)
    return _once_each(streams, not_read), not_read


def _once_each(streams: list[Stream], not_read: dict[str, str]) -> list[Stream]:
    """One stream per kind; Events of `v1` rather than their other view."""
    chosen: dict[ObjectKind, Stream] = {}
    for stream in sorted(streams, key=lambda one: one.translator.group):
        kind = stream.translator.kind
        if kind in chosen:
            not_read[stream.name] = f"{chosen[kind].name} has the same objects"
        else:
            chosen[kind] = stream
    return sorted(chosen.values(), key=lambda one: _ORDER[one.translator.kind])


def _kind_in(list_file: Path | None, watch_file: Path | None) -> tuple[str, str]:
    """Group and kind, from the list, else from the first line; empty where nothing says it."""
    try:
        if list_file is not None:
            listed = read_object(CarefulFile(list_file).whole(), ObjectList)
            if listed.kind:
                return api_group(listed.api_version), listed.kind.removesuffix("List")
    except UNREADABLE:
        pass  # the list is set aside when it is delivered; its stream may still tell
    try:
        head = read_object(next(iter(CarefulFile(watch_file)), b""), Line[Head]).object
        return api_group(head.api_version), head.kind or ""
    except UNREADABLE:
        return "", ""


# ------------------------------------------------------------ in the order of receipt


def _merged(streams: list[Stream]) -> Iterator[Reading]:
    first = [at_ms for stream in streams if (at_ms := _first_ms(stream)) is not None]
    began_ms = min(first or map(_listed_ms, streams), default=0)
    for stream in streams:
        yield from _list_of(stream, began_ms)
    yield from heapq.merge(*(_lines_of(stream, began_ms) for stream in streams), key=_observed_ms)


def _observed_ms(reading: Reading) -> int:
    return reading.observed_ms


def _first_ms(stream: Stream) -> int | None:
    """When the first line was received."""
    try:
        return _epoch_ms(next(iter(CarefulFile(stream.times_file)), b""))
    except ValueError:
        return None  # said where the lines are read


def _listed_ms(stream: Stream) -> int:
    """When the list was written: an unpacked archive may have lost it, so any receive time is better."""
    return int(stream.list_file.stat().st_mtime * 1000) if stream.list_file is not None else 0


def _list_of(stream: Stream, began_ms: int) -> Iterator[Reading]:
    if stream.list_file is None:
        return
    file = CarefulFile(stream.list_file)
    data = file.whole()
    if file.because:
        yield _cut(stream, began_ms, file.because, lines=1)
        return
    yield Reading(began_ms, stream, Part.LIST, data)


def _lines_of(stream: Stream, began_ms: int) -> Iterator[Reading]:
    """The lines of a watch with their instants, up to where either file ends."""
    at_ms = began_ms
    times, lines = CarefulFile(stream.times_file, ends=True), CarefulFile(stream.watch_file)
    received = iter(times)
    for line in lines:
        time = next(received, None)
        if time is None:
            because = times.because or f"{stream.name}.times: no receive time for the rest of the lines"
            yield _cut(stream, at_ms, because, lines=1 + sum(1 for _ in lines))
            return
        try:
            # A clock that was set back must not put a line before the one it follows.
            at_ms = max(at_ms, _epoch_ms(time))
        except ValueError:
            because = f"{stream.name}.times: {time[:40]!r} is no epoch time"
            yield Reading(at_ms, stream, Part.UNTIMED, because.encode())
            continue
        if lines.is_open and _is_cut(line):
            yield _cut(stream, at_ms, f"{stream.name}.watch.ndjson is cut off within its last line", lines=1)
            continue
        yield Reading(at_ms, stream, Part.LINE, line)
    missing = sum(1 for time in received if time.strip())
    if because := lines.because or times.because:
        yield _cut(stream, at_ms, because, lines=max(1, missing))
    elif missing:
        because = (
            f"{stream.name}.watch.ndjson ends early: {stream.name}.times has receive times for more lines"
        )
        yield _cut(stream, at_ms, because, lines=missing)


def _is_cut(line: bytes) -> bool:
    """Whether a last line that has no end is only a part of one."""
    try:
        read_object(line, Line[Head])
    except UNREADABLE:
        return True
    return False


def _cut(stream: Stream, at_ms: int, because: str, *, lines: int) -> Reading:
    return Reading(at_ms, stream, Part.CUT, because.encode(), lines)


def _epoch_ms(line: bytes) -> int:
    """
    Milliseconds of an epoch time in seconds.

    >>> _epoch_ms(b"1795964764.171")
    1795964764171
    """
    seconds = float(line)  # NaN fails the comparison as well
    if not 0 < seconds < 1e11:
        message = f"{seconds}: expected seconds since the epoch"
        raise ValueError(message)
    return round(seconds * 1000)


@dataclass(slots=True)
class _Counted:
    """A sink that counts what goes through it."""

    sink: FactSink
    rows: Counter[str] = field(default_factory=Counter)

    def known(self, cluster: str) -> Known:
        return self.sink.known(cluster)

    def append(self, batch: Batch) -> int:
        appended = self.sink.append(batch)
        self.rows["transitions"] += len(batch.transitions)
        self.rows["descriptions"] += len(batch.descriptions)
        self.rows["events"] += len(batch.events)
        return appended
