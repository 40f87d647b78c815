"""A recorded cluster behind the fake API server: lists and lines byte for byte, let out bit by bit."""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import msgspec
from typing_extensions import override

from collector.decoding import Line
from collector.kube.watch import split_line
from collector.recording import Part, readings
from collector.translator import Translator
from tests.fake_cluster import FakeCluster
from tests.fake_etcd import Change, Resource
from tests.shared import shared


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    uid: str = ""
    name: str = ""


class _Head(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct, rename="camel"):
    api_version: str
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


class RecordedLine(NamedTuple):
    """A line of a watch, and when it was received."""

    at_ms: int
    line: bytes
    version: str
    uid: str
    event_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedKind:
    """The list of one kind and the watch that follows it."""

    path: str
    translator: Translator
    listed: bytes
    version: str
    items: dict[str, msgspec.Raw]
    lines: tuple[RecordedLine, ...]


@cache
def recorded(name: str) -> tuple[RecordedKind, ...]:
    """The kinds of a recording that we read, in the order of their lists."""
    lists: dict[str, tuple[Translator, bytes]] = {}
    lines: dict[str, list[RecordedLine]] = {}
    for reading in readings(shared(f"data/recorded/{name}")):
        kind = reading.stream.name
        if reading.part is Part.LIST:
            lists[kind] = (reading.stream.translator, reading.data)
        else:
            head = msgspec.json.decode(reading.data, type=Line[_Head])
            said = head.object.metadata
            line = RecordedLine(reading.observed_ms, reading.data, said.resource_version, said.uid, head.type)
            lines.setdefault(kind, []).append(line)
    return tuple(
        _kind(translator, data, tuple(lines.get(kind, ()))) for kind, (translator, data) in lists.items()
    )


def _kind(translator: Translator, data: bytes, lines: tuple[RecordedLine, ...]) -> RecordedKind:
    listed = msgspec.json.decode(data, type=_List)
    root = "/apis" if translator.group else "/api"
    return RecordedKind(
        path=f"{root}/{listed.api_version}/{translator.resource}",
        translator=translator,
        listed=data,
        version=listed.metadata.resource_version,
        items={msgspec.json.decode(item, type=_Head).metadata.uid: item for item in listed.items or ()},
        lines=lines,
    )


def cluster_uid(kinds: tuple[RecordedKind, ...]) -> str:
    """The uid of the recorded cluster's kube-system."""
    items = [msgspec.json.decode(item, type=_Head).metadata for kind in kinds for item in kind.items.values()]
    return next(item.uid for item in items if item.name == "kube-system")


@cache
def recorded_gap() -> dict[str, msgspec.Raw]:
    """What a reader got that came back after three minutes: bodies and lines by the step they came in."""
    found: dict[str, msgspec.Raw] = {}
    with gzip.open(shared("data/recorded/native/gap.ndjson.gz")) as file:
        for line in file:
            step: dict[str, Any] = json.loads(line)
            name = f"{step['step']} {step.get('name', '')}".strip()
            if isinstance(step.get("body"), str):
                found[name] = msgspec.Raw(step["body"].encode())
            elif "body" in step:
                found[name] = msgspec.Raw(msgspec.json.encode(step["body"]))
            elif "first_line" in step:
                found[name] = msgspec.Raw(step["first_line"].encode() + b"\n")
            elif "bookmark" in step:
                found[name] = msgspec.Raw(msgspec.json.encode(step["bookmark"][0]))
    return found


class RecordedCluster(FakeCluster):
    """
    Serves a recording as far as it was let out.

    Until something is let out a list is the recorded one, and a list in pages holds its items; later
    ones hold the newest recorded reading of each object.
    """

    def __init__(self, kinds: tuple[RecordedKind, ...]) -> None:
        super().__init__(cluster_uid=cluster_uid(kinds))
        self._kinds = {kind.path: kind for kind in kinds}
        self._out = dict.fromkeys(self._kinds, 0)
        self.serve(*self._kinds)
        for path, kind in self._kinds.items():
            self._resources[path].objects.update(kind.items)
        self.replays_once = True
        self.expired_body = recorded_gap()["continue with an old token"]

    def let_out(self, path: str, until_ms: int, *, most: int = 1 << 30) -> int:
        """Let lines out that were received by then; gives how many."""
        with self.changed:
            resource, kind = self._resources[path], self._kinds[path]
            first = self._out[path]
            last = first
            while last < len(kind.lines) and kind.lines[last].at_ms <= until_ms and last - first < most:
                self._let_out(resource, kind.lines[last])
                last += 1
            self._out[path] = last
            self.changed.notify_all()
            return last - first

    def newest(self, path: str) -> str:
        """The version of what was let out last."""
        kind, out = self._kinds[path], self._out[path]
        return kind.lines[out - 1].version if out else kind.version

    def items(self, path: str) -> list[msgspec.Raw]:
        """The objects of a list that is made now."""
        return [body for body in self._resources[path].objects.values() if isinstance(body, msgspec.Raw)]

    def last_lines(self, path: str, lines: int) -> bytes:
        """The last lines that were let out, as a watch would give them again."""
        kind, out = self._kinds[path], self._out[path]
        return b"".join(line.line + b"\n" for line in kind.lines[max(0, out - lines) : out])

    @override
    def list_version(self, resource: Resource) -> str:
        (path,) = (path for path in self._kinds if self._resources.get(path) is resource)
        return self.newest(path)

    @staticmethod
    def _let_out(resource: Resource, line: RecordedLine) -> None:
        body = msgspec.Raw(split_line(line.line)[1])
        resource.history.append(Change(int(line.version), line.event_type, body))
        if line.event_type == "DELETED":
            resource.objects.pop(line.uid, None)
        elif line.event_type != "BOOKMARK":
            resource.objects[line.uid] = body
