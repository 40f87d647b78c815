"""
A journal of the raw stream: what an intake was given, in order, so that it can be given again.

It is optional, compressed, and no larger than it may be. A folder holds the journal of one cluster:
files `00000001.ndjson.gz` and so on, of blocks that can each be read alone. A block is written, and
on the disk, before the facts that come of it are committed.
"""

import gzip
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from collector.decoding import Payload
from collector.on_disk import settle
from collector.raw import RawObject
from collector.shared_intake import TakesIn
from collector.sink import FactSink
from collector.translator import Translator
from domain.facts import Batch, Known, ObjectKind, SourceMark

_LEVEL = 3
_SUFFIX = ".ndjson.gz"


class Started(msgspec.Struct, tag="started", omit_defaults=True):
    """
    An intake began, with what the store knew: where the reading of each kind stood.

    That is more than the journal tells where something was read without one.
    """

    marks: dict[ObjectKind, SourceMark] = {}


class Seen(msgspec.Struct, tag="seen", kw_only=True):
    """As `Intake.see`."""

    at: int
    group: str
    kind: str
    event: str
    object: msgspec.Raw


class Listed(msgspec.Struct, tag="listed", kw_only=True):
    """As `Intake.relisted`."""

    at: int
    group: str
    kind: str
    version: str
    items: list[msgspec.Raw]


class Troubled(msgspec.Struct, tag="troubled", kw_only=True):
    """As `Intake.troubled`."""

    at: int
    group: str
    kind: str
    because: str


class Accepted(msgspec.Struct, tag="accepted", kw_only=True):
    """As `Intake.accepted`."""

    at: int
    group: str
    kind: str


class Removed(msgspec.Struct, tag="removed", kw_only=True):
    """As `Intake.removed`."""

    at: int
    group: str
    kind: str


class Identified(msgspec.Struct, tag="identified", kw_only=True):
    """As `Intake.identify`."""

    uid: str


class Flushed(msgspec.Struct, tag="flushed"):
    """As `Intake.flush`."""


class Broken(msgspec.Struct, tag="broken"):
    """
    Entries that stood here cannot be read any more.

    `by_kill`: as a process leaves a file that died while it wrote, of what it had acknowledged to nobody.
    """

    because: str
    by_kill: bool = False


OfKind = Seen | Listed | Troubled | Accepted | Removed
Entry = Started | OfKind | Identified | Flushed | Broken
ENTRY = msgspec.json.Decoder(Entry)
_ENCODER = msgspec.json.Encoder()


class Journal:
    """
    Writes the journal of one cluster. A new one begins a new file.

    Args:
        folder: of this cluster alone.
        most_bytes: the oldest files are dropped when it becomes larger.
        file_bytes: a file that is as long is followed by another one.
        rewrite: what is written, for what was noted: a name may have to stay out.
        marks: where the store says that reading stands, as this journal begins.
    """

    FLUSHED: ClassVar[bytes] = _ENCODER.encode(Flushed())

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int,
        file_bytes: int = 64 << 20,
        rewrite: Callable[[str], str] | None = None,
        marks: Mapping[ObjectKind, SourceMark] | None = None,
    ) -> None:
        self._rewrite = rewrite
        self._folder = folder
        self._most_bytes = most_bytes
        self._file_bytes = min(file_bytes, max(1, most_bytes // 4))
        self._waiting: list[bytes] = [_ENCODER.encode(Started(dict(marks or {})))]
        folder.mkdir(parents=True, exist_ok=True)
        self._begin_file()

    def note(self, entry: Entry) -> None:
        """Take an entry; it is written with the next commit."""
        line = _ENCODER.encode(entry)
        if line == self.FLUSHED and self._waiting[-1:] in ([], [self.FLUSHED]):
            return  # nothing was noted since the last one
        # Outside of strings a line end is only a space, and inside of them there is none.
        self._waiting.append(line.replace(b"\n", b" "))

    def commit(self) -> None:
        """
        Write what waits, down to the disk.

        Raises:
            OSError: it cannot be written; nothing of it was, and it waits on.
        """
        if not self._waiting:
            return
        text = b"\n".join(self._waiting) + b"\n"
        if self._rewrite is not None:
            # What is no UTF-8 is kept as it came, and set aside by whoever decodes it.
            text = self._rewrite(text.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        block = gzip.compress(text, _LEVEL, mtime=0)
        try:
            end = self._append(block)
        except OSError as cause:
            message = f"the journal cannot be written: {cause.strerror}"
            raise OSError(cause.errno, message, str(self._path)) from cause
        self._waiting.clear()
        while self._older and sum(self._older.values()) + end > self._most_bytes:
            oldest = next(iter(self._older))
            oldest.unlink()
            del self._older[oldest]
        if end >= self._file_bytes:
            self._begin_file()

    def _append(self, block: bytes) -> int:
        """Write a block down to the disk, or nothing of it; gives where the file ends now."""
        # Without a buffer, for closing the file would write what is left in it after the cut.
        with self._path.open("ab", buffering=0) as file:
            begin = file.tell()
            try:
                rest = memoryview(block)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
                if not begin:
                    settle(self._path)
                    settle(self._folder)
            except OSError:
                try:
                    os.truncate(self._path, begin)
                except OSError:
                    # Behind a piece of a block nothing would be read.
                    self._begin_file()
                raise
            return file.tell()

    def _begin_file(self) -> None:
        files = journal_files(self._folder)
        # Each start begins a file too, so every commit looks whether all of them together are too large.
        self._older = {path: path.stat().st_size for path in files}
        number = 1 + max((number_of(path) for path in files), default=0)
        self._path = self._folder / name_of(number)


def journal_files(folder: Path) -> list[Path]:
    """The files of a journal, oldest first."""
    found = folder.glob(f"*{_SUFFIX}") if folder.is_dir() else ()
    # What others put there is theirs: it is neither read nor dropped.
    return sorted(
        (path for path in found if (number := number_of(path)) and path.name == name_of(number)),
        key=number_of,
    )


def name_of(number: int) -> str:
    """The name of the file with a number."""
    return f"{number:08}{_SUFFIX}"


def number_of(path: Path) -> int:
    """The number of a file; the first file of a journal is 1, and 0 is none of its files."""
    name = path.name.removesuffix(_SUFFIX)
    return int(name) if name.isdecimal() else 0


class JournalFirst:
    """A sink whose batches are in a journal, down to the disk, before they are committed."""

    def __init__(self, sink: FactSink, journal: Journal) -> None:
        self._sink = sink
        self._journal = journal

    def known(self, cluster: str) -> Known:
        """As the sink's."""
        return self._sink.known(cluster)

    def append(self, batch: Batch) -> int:
        """
        As the sink's.

        Raises:
            OSError: the journal cannot be written, and nothing was appended.
        """
        self._journal.commit()
        return self._sink.append(batch)


class JournaledIntake:
    """An intake whose readings are noted in a journal first."""

    def __init__(self, intake: TakesIn, journal: Journal) -> None:
        self._intake = intake
        self._journal = journal

    @property
    def histories(self) -> int:
        """As `Intake.histories`."""
        return self._intake.histories

    def see(
        self,
        translator: Translator,
        event_type: str,
        payload: Payload,
        observed_ms: int,
        *,
        read: RawObject | None = None,
    ) -> None:
        """As `Intake.see`."""
        self._journal.note(
            Seen(
                at=observed_ms,
                group=translator.group,
                kind=translator.api_kind,
                event=event_type,
                object=_raw(payload),
            )
        )
        self._intake.see(translator, event_type, payload, observed_ms, read=read)

    def relisted(
        self, translator: Translator, items: Iterable[Payload], resource_version: str, observed_ms: int
    ) -> None:
        """As `Intake.relisted`."""
        listed = list(items)
        self._journal.note(
            Listed(
                at=observed_ms,
                group=translator.group,
                kind=translator.api_kind,
                version=resource_version,
                items=[_raw(item) for item in listed],
            )
        )
        self._intake.relisted(translator, listed, resource_version, observed_ms)

    def troubled(self, translator: Translator, because: str, observed_ms: int) -> None:
        """As `Intake.troubled`."""
        self._journal.note(
            Troubled(at=observed_ms, group=translator.group, kind=translator.api_kind, because=because)
        )
        self._intake.troubled(translator, because, observed_ms)

    def accepted(self, translator: Translator, observed_ms: int) -> None:
        """As `Intake.accepted`."""
        self._journal.note(Accepted(at=observed_ms, group=translator.group, kind=translator.api_kind))
        self._intake.accepted(translator, observed_ms)

    def removed(self, translator: Translator, observed_ms: int) -> None:
        """As `Intake.removed`."""
        self._journal.note(Removed(at=observed_ms, group=translator.group, kind=translator.api_kind))
        self._intake.removed(translator, observed_ms)

    def identify(self, cluster_uid: str) -> None:
        """As `Intake.identify`."""
        self._journal.note(Identified(uid=cluster_uid))
        self._intake.identify(cluster_uid)

    def flush(self) -> int:
        """As `Intake.flush`."""
        self._journal.note(Flushed())
        return self._intake.flush()


def _raw(payload: Payload) -> msgspec.Raw:
    if isinstance(payload, msgspec.Raw):
        return payload
    return msgspec.Raw(msgspec.json.encode(payload) if isinstance(payload, dict) else bytes(payload))
