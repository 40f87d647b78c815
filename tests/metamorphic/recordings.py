"""Copies of a recording: one without one of its jobs, one in which lines come twice."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIST, WATCH, TIMES = ".list.json.gz", ".watch.ndjson.gz", ".times.gz"
_QUICKLY = 1  # the copies are read once: small files are not worth the time


def without(folder: Path, workload_uid: str, into: Path) -> set[str]:
    """
    Copy a recording and leave out all objects of one job.

    Gone are the queueing Workload, its Job, the Pods below, and the Events that regard any of them;
    each line goes with its receive time.

    Returns:
        The uids of the objects that are gone, Events not among them.
    """
    gone = _family(folder, workload_uid)
    into.mkdir(parents=True)
    for name in _streams(folder):
        listed = json.loads(gzip.decompress((folder / f"{name}{LIST}").read_bytes()))
        listed["items"] = [item for item in listed["items"] if not _is_of(item, gone)]
        _write(into / f"{name}{LIST}", [json.dumps(listed, separators=(",", ":"))])
        kept = [
            (line, time)
            for line, time in zip(
                lines(folder / f"{name}{WATCH}"), lines(folder / f"{name}{TIMES}"), strict=True
            )
            if not _is_of(json.loads(line)["object"], gone)
        ]
        _write(into / f"{name}{WATCH}", [line for line, _ in kept])
        _write(into / f"{name}{TIMES}", [time for _, time in kept])
    return gone


def with_a_replay(folder: Path, into: Path, *, from_seconds: float, until_seconds: float) -> int:
    """
    Copy a recording in which every watch tells the stretch [from, until) a second time.

    The lines come again right after the stretch, as from a watch that began anew at an older version.

    Returns:
        How many lines come twice.
    """
    shutil.copytree(folder, into)
    twice = 0
    for name in _streams(folder):
        told, times = list(lines(folder / f"{name}{WATCH}")), list(lines(folder / f"{name}{TIMES}"))
        stretch = [place for place, time in enumerate(times) if from_seconds <= float(time) < until_seconds]
        if not stretch:
            continue
        first, after = stretch[0], stretch[-1] + 1
        _write(into / f"{name}{WATCH}", told[:after] + told[first:after] + told[after:])
        _write(into / f"{name}{TIMES}", times[:after] + [times[after - 1]] * len(stretch) + times[after:])
        twice += len(stretch)
    return twice


def objects(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Every state of every object of a stream, those of its list first."""
    yield from json.loads(gzip.decompress((folder / f"{name}{LIST}").read_bytes()))["items"]
    for line in lines(folder / f"{name}{WATCH}"):
        event = json.loads(line)
        if event["type"] != "BOOKMARK":
            yield event["object"]


def lines(path: Path) -> list[str]:
    """The lines of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def _streams(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(LIST) for path in folder.glob(f"*{LIST}"))


def _family(folder: Path, workload_uid: str) -> set[str]:
    """The Workload and its owning Job, or the bare Pod, and all that they own."""
    gone = {workload_uid}
    for workload in objects(folder, "workloads"):
        if workload["metadata"]["uid"] == workload_uid:
            gone.update(owner["uid"] for owner in workload["metadata"]["ownerReferences"])
    for name in ("jobs", "workloads", "pods"):
        for item in objects(folder, name):
            if any(owner["uid"] in gone for owner in item["metadata"].get("ownerReferences", ())):
                gone.add(item["metadata"]["uid"])
    return gone


def _is_of(item: dict[str, Any], gone: set[str]) -> bool:
    regarded = item.get("involvedObject") or item.get("regarding") or {}
    return item["metadata"].get("uid") in gone or regarded.get("uid") in gone


def _write(path: Path, texts: list[str]) -> None:
    path.write_bytes(gzip.compress("".join(f"{text}\n" for text in texts).encode(), compresslevel=_QUICKLY))
