"""The recording that is being made: lists, watch lines and the times at which they came in."""

import gzip
import io
import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from sample_data.stamps import MS_PER_SECOND

Json = dict[str, Any]

_VERSION_MARK = "@version@"
_FIRST_VERSION = 41_000
_BOOKMARK_EVERY_MS = (60_000, 60_000)
# A watch line comes in this long after the write; the order within a stream stays.
_LATENCY_MS = (3, 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One pair of list and watch: the file's name and what the API server calls its objects."""

    name: str
    api_version: str
    kind: str
    bookmarks: bool = True


STREAMS = {
    stream.name: stream
    for stream in (
        Stream(name="namespaces", api_version="v1", kind="Namespace"),
        Stream(name="nodes", api_version="v1", kind="Node"),
        Stream(name="priorityclasses", api_version="scheduling.k8s.io/v1", kind="PriorityClass"),
        Stream(name="jobs", api_version="batch/v1", kind="Job"),
        Stream(name="pods", api_version="v1", kind="Pod"),
        # A real API server sends no bookmarks for events.
        Stream(name="core-events", api_version="v1", kind="Event", bookmarks=False),
        Stream(name="events", api_version="events.k8s.io/v1", kind="Event", bookmarks=False),
        Stream(name="workloads", api_version="kueue.x-k8s.io/v1beta2", kind="Workload"),
        Stream(name="clusterqueues", api_version="kueue.x-k8s.io/v1beta2", kind="ClusterQueue"),
        Stream(name="localqueues", api_version="kueue.x-k8s.io/v1beta2", kind="LocalQueue"),
        Stream(name="cohorts", api_version="kueue.x-k8s.io/v1beta2", kind="Cohort"),
        Stream(name="resourceflavors", api_version="kueue.x-k8s.io/v1beta2", kind="ResourceFlavor"),
        Stream(
            name="workloadpriorityclasses",
            api_version="kueue.x-k8s.io/v1beta2",
            kind="WorkloadPriorityClass",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Line:
    """One watch line as it came in."""

    received_ms: int
    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class _Write:
    at_ms: int
    names: tuple[str, ...]
    event_type: str
    texts: tuple[str, ...]


@dataclass(slots=True)
class Tape:
    """
    Collects writes in any order; cut into lines they are in the order of their instants.

    `bookmark_every_ms`: the shortest and the longest time from one bookmark to the next.
    """

    start_ms: int
    bookmark_every_ms: tuple[int, int] = _BOOKMARK_EVERY_MS
    items: dict[str, list[str]] = field(default_factory=dict)
    writes: list[_Write] = field(default_factory=list)

    def stand(self, stream: str, obj: Json) -> None:
        """Put an object into the first list: it was there before the recording began."""
        self.items.setdefault(stream, []).append(_text(stream, obj))

    def write(self, at_ms: int, event_type: str, objects: Mapping[str, Json]) -> None:
        """
        Write one stored object down as it is now.

        Args:
            at_ms: when.
            event_type: ADDED, MODIFIED or DELETED.
            objects: the object in each stream that shows it; an Event has two views.
        """
        texts = tuple(_text(stream, obj) for stream, obj in objects.items())
        self.writes.append(_Write(at_ms, tuple(objects), event_type, texts))

    def lists(self) -> dict[str, str]:
        """The LIST answer of each stream."""
        answers = {}
        version = _FIRST_VERSION
        for name, stream in STREAMS.items():
            items = []
            for text in self.items.get(name, []):
                version += 1
                items.append(json.loads(text.replace(_VERSION_MARK, str(version))))
            answers[name] = {
                "kind": f"{stream.kind}List",
                "apiVersion": stream.api_version,
                "metadata": {"resourceVersion": ""},
                "items": items,
            }
        for answer in answers.values():
            answer["metadata"] = {"resourceVersion": str(version)}
        return {name: json.dumps(answer, separators=(",", ":")) for name, answer in answers.items()}

    def lines(self, rng: Random, end_ms: int) -> list[Line]:
        """All watch lines up to the end, bookmarks among them, as they came in."""
        version = _FIRST_VERSION + sum(map(len, self.items.values()))
        lines: list[Line] = []
        last_ms: dict[str, int] = {}
        # Of its own: how often bookmarks come changes nothing else.
        pace = Random(self.start_ms)
        bookmark_ms = self.start_ms + pace.randint(*self.bookmark_every_ms)
        for written in sorted(self.writes, key=lambda written: written.at_ms):
            while bookmark_ms <= min(written.at_ms, end_ms):
                lines += _bookmarks(bookmark_ms, version, last_ms)
                bookmark_ms += pace.randint(*self.bookmark_every_ms)
            if written.at_ms >= end_ms:
                break
            version += 1
            for name, text in zip(written.names, written.texts, strict=True):
                received_ms = max(written.at_ms + rng.randint(*_LATENCY_MS), last_ms.get(name, 0))
                last_ms[name] = received_ms
                whole = f'{{"type":"{written.event_type}","object":{text}}}'
                lines.append(Line(received_ms, name, whole.replace(_VERSION_MARK, str(version))))
        while bookmark_ms <= end_ms:
            lines += _bookmarks(bookmark_ms, version, last_ms)
            bookmark_ms += pace.randint(*self.bookmark_every_ms)
        return sorted(lines, key=lambda line: line.received_ms)


def write_recording(
    folder: Path,
    lists: Mapping[str, str],
    lines: list[Line],
    *,
    streams: Mapping[str, Stream] = STREAMS,
    packing: str = "gz",
) -> None:
    """
    Write the lists and lines as a recording folder; the same input gives the same bytes.

    Args:
        folder: made if it is not there.
        lists: the LIST answer of each stream.
        lines: all watch lines, in order of receipt.
        streams: those that are written.
        packing: gz, or xz, which is smaller.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own: dict[str, list[Line]] = {name: [] for name in streams}
    for line in lines:
        if line.stream in own:
            own[line.stream].append(line)
    for name, mine in own.items():
        write_packed(folder / f"{name}.list.json.{packing}", lists[name] + "\n")
        write_packed(folder / f"{name}.watch.ndjson.{packing}", "".join(line.text + "\n" for line in mine))
        times = "".join(f"{line.received_ms / MS_PER_SECOND:.3f}\n" for line in mine)
        write_packed(folder / f"{name}.times.{packing}", times)


def write_packed(path: Path, text: str) -> None:
    """Write text compressed as the name's end says, gz or xz."""
    if path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode(), preset=6))
    else:
        write_gzip(path, text)


def write_gzip(path: Path, text: str) -> None:
    """Write text compressed, without a name or a time in the header."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as stream:
        stream.write(text.encode())
    path.write_bytes(buffer.getvalue())


def _text(stream: str, obj: Json) -> str:
    head = {"kind": STREAMS[stream].kind, "apiVersion": STREAMS[stream].api_version}
    metadata = {**obj["metadata"], "resourceVersion": _VERSION_MARK}
    return json.dumps({**head, **obj, "metadata": metadata}, separators=(",", ":"))


def _bookmarks(at_ms: int, version: int, last_ms: dict[str, int]) -> Iterator[Line]:
    for name, stream in STREAMS.items():
        if not stream.bookmarks:
            continue
        obj = {
            "kind": stream.kind,
            "apiVersion": stream.api_version,
            "metadata": {"resourceVersion": str(version)},
        }
        last_ms[name] = max(at_ms, last_ms.get(name, 0))
        yield Line(
            last_ms[name], name, json.dumps({"type": "BOOKMARK", "object": obj}, separators=(",", ":"))
        )
