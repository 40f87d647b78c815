"""
What follows a recording: whoever is still there is sent home within a minute, and nothing more happens.

The API server says so as it does: the last object of each with the next version and, where it is a Pod, the
instant at which its deletion was asked for; then bookmarks only.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from collector.decoding import Line
from collector.recording import Part, Reading, Stream, readings
from domain.facts import ObjectKind
from sample_data.stamps import stamp

MINUTE_MS: Final = 60_000
# Whoever made the work goes first, as when its owner deletes it.
_SENT_HOME: Final = ("statefulsets", "jobs", "vcjobs", "podgroups", "workloads", "pods")


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = "0"
    uid: str = ""


class _Head(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


def quiet(folder: Path, *, minutes: int) -> Iterator[Reading]:
    """What the watches of a recording bring in the minutes after its last line."""
    streams: dict[str, Stream] = {}
    left: dict[str, dict[str, bytes]] = {}
    version = last_ms = 0
    for reading in readings(folder):
        streams[reading.stream.name], last_ms = reading.stream, reading.observed_ms
        there = left.setdefault(reading.stream.name, {})
        if reading.part is Part.LIST:
            listed = msgspec.json.decode(reading.data, type=_List)
            version = max(version, int(listed.metadata.resource_version))
            for item in listed.items or ():
                there[msgspec.json.decode(item, type=_Head).metadata.uid] = bytes(item)
        else:
            line = msgspec.json.decode(reading.data, type=Line[msgspec.Raw])
            said = msgspec.json.decode(line.object, type=_Head).metadata
            version = max(version, int(said.resource_version))
            if line.type == "DELETED":
                there.pop(said.uid, None)
            elif said.uid:
                there[said.uid] = bytes(line.object)
    going = [(streams[name], one) for name in _SENT_HOME for one in left.get(name, {}).values()]
    for place, (stream, one) in enumerate(going, start=1):
        version += 1
        yield _deleted(stream, one, version, last_ms + place * MINUTE_MS // (len(going) + 1))
    for minute in range(1, minutes + 1):
        for stream in streams.values():
            if stream.translator.kind is not ObjectKind.EVENT:
                yield _bookmark(stream, version, last_ms + minute * MINUTE_MS)


def _deleted(stream: Stream, last: bytes, version: int, at_ms: int) -> Reading:
    one: dict[str, Any] = json.loads(last)
    one["metadata"]["resourceVersion"] = str(version)
    one["metadata"]["deletionTimestamp"] = stamp(at_ms)
    line = json.dumps({"type": "DELETED", "object": one}).encode()
    return Reading(at_ms, stream, Part.LINE, line)


def _bookmark(stream: Stream, version: int, at_ms: int) -> Reading:
    line = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}})
    return Reading(at_ms, stream, Part.LINE, line.encode())
