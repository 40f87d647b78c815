"""
A journal of the raw stream: what an intake was given, in order, so that it can be given again.

It is optional, compressed, and no larger than it may be. A folder holds the journal of one cluster:
files `00000001.ndjson.gz` and so on, of blocks that can each be read alone. A block is written, and
on the disk, before the facts that come of it are committed.
"""

import gzip
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

import msgspec

from collector.decoding import Payload
from collector.raw import RawObject
from collector.shared_intake import TakesIn
from collector.translator import Translator

_LEVEL = 3
_SUFFIX = ".ndjson.gz"


class Started(msgspec.Struct, tag="started"):
    """An intake began, with what the store knew."""


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


class Identified(msgspec.Struct, tag="identified", kw_only=True):
    """As `Intake.identify`."""

    uid: str


class Flushed(msgspec.Struct, tag="flushed"):
    """As `Intake.flush`."""


Entry = Started | Seen | Listed | Troubled | Identified | Flushed
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
    """

    STARTED: ClassVar[bytes] = _ENCODER.encode(Started())
    FLUSHED: ClassVar[bytes] = _ENCODER.encode(Flushed())

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int,
        file_bytes: int = 64 << 20,
        rewrite: Callable[[str], str] | None = None,
    ) -> None:
        self._rewrite = rewrite
        self._folder = folder
        self._most_bytes = most_bytes
        self._file_bytes = min(file_bytes, max(1, most_bytes // 4))
        self._waiting: list[bytes] = [self.STARTED]
        folder.mkdir(parents=True, exist_ok=True)
        self._path = self._next()

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
            text = self._rewrite(text.decode()).encode()
        block = gzip.compress(text, _LEVEL, mtime=0)
        with self._path.open("ab") as file:
            begin = file.tell()
            try:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.truncate(self._path, begin)
                raise
            end = file.tell()
        self._waiting.clear()
        if end >= self._file_bytes:
            self._path = self._next()
            self._drop_oldest()

    def _next(self) -> Path:
        files = journal_files(self._folder)
        number = 1 + max((number_of(path) for path in files), default=0)
        return self._folder / f"{number:08}{_SUFFIX}"

    def _drop_oldest(self) -> None:
        files = journal_files(self._folder)
        size = sum(path.stat().st_size for path in files)
        for path in files[:-1]:
            if size <= self._most_bytes:
                return
            size -= path.stat().st_size
            path.unlink()


def journal_files(folder: Path) -> list[Path]:
    """The files of a journal, oldest first."""
    return sorted(folder.glob(f"*{_SUFFIX}"), key=number_of) if folder.is_dir() else []


def number_of(path: Path) -> int:
    """The number of a file; the first file of a journal is 1."""
    name = path.name.removesuffix(_SUFFIX)
    return int(name) if name.isdecimal() else 0


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
    return msgspec.Raw(payload if isinstance(payload, bytes) else msgspec.json.encode(payload))
