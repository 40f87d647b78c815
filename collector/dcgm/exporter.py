"""
What exporters answered, as samples: recorded scrapes, and single answers in a file.

A recording has a line `#scrape {"t": received, "status": 200, "bytes": N}` before each answer, and then
exactly N bytes of it; `"same": true` stands for the answer before. A scrape that failed has a status of 0.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from collector.dcgm.exposition import readings
from collector.dcgm.health import of_answer
from collector.dcgm.samples import (
    BAD_LINE,
    NO_METRICS,
    OF_THE_FUTURE,
    Gathered,
    Samples,
    is_wanted,
    tells_health,
)
from collector.decoding import UNREADABLE
from collector.unpacking import CarefulFile
from domain.errors import RecordingError
from domain.gpu_fault import HealthReading
from domain.window import CLOCK_SKEW_MS, MS_PER_SECOND, instant_of_seconds

_MARK: Final = b"#scrape "
_OK: Final = 200


class Scrape(msgspec.Struct, kw_only=True):
    """The head of a recorded answer; `t` is epoch seconds."""

    t: float
    status: int
    size: int = msgspec.field(name="bytes", default=0)
    same: bool = False
    error: str = ""


_HEAD: Final = msgspec.json.Decoder(Scrape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scraped:
    """
    What a file holds: samples of answers, and the scrapes that failed by cause.

    `until_ms` is how far it goes; `broken` says why the rest could not be read.
    """

    samples: Samples
    step_ms: int
    until_ms: int
    answers: int
    failed: Counter[str]
    broken: str = ""
    health: tuple[HealthReading, ...] = ()


def take_answer(gathered: Gathered, text: str, at_ms: int) -> list[tuple[int, str, float]]:
    """
    Gather the readings of one answer, made at that instant; also given are series, field and value.

    A line with a timestamp of its own counts at that one, unless it lies ahead.
    """
    taken = []
    nothing = True

    def refuse(_: str) -> None:
        nonlocal nothing
        nothing = False
        gathered.set_aside[BAD_LINE] += 1

    for reading in readings(text, is_wanted, refuse):
        nothing = False
        series = gathered.series_of_text(reading.labels)
        if series is None:
            continue
        own_ms = reading.at_ms
        if own_ms is not None and own_ms > at_ms + CLOCK_SKEW_MS:
            gathered.set_aside[OF_THE_FUTURE] += 1
            continue
        gathered.add(series, reading.name, at_ms if own_ms is None else own_ms, reading.value)
        if own_ms is None:
            taken.append((series, reading.name, reading.value))
    if nothing and not tells_health(text):
        gathered.set_aside[NO_METRICS] += 1
    return taken


def read_file(path: Path, *, step_ms: int | None, single_at_ms: int) -> Scraped:
    """
    The samples of a recording of one exporter, or of one answer of it.

    Args:
        path: the file; compressed as `.gz` or `.xz`, or not.
        step_ms: how far apart the scrapes were meant to be; None takes the median of what they were.
        single_at_ms: when a file without `#scrape` lines was read.

    Raises:
        RecordingError: the file holds no scrape.
    """
    file = CarefulFile(path)
    data = file.whole()
    gathered = Gathered(node=path.name.partition(".")[0])
    if not data.startswith(_MARK):
        text = data.decode(errors="replace")
        take_answer(gathered, text, single_at_ms)
        return Scraped(
            health=tuple(of_answer(text, single_at_ms, node=gathered.node)),
            samples=gathered.samples(step_ms or 15 * MS_PER_SECOND),
            step_ms=step_ms or 15 * MS_PER_SECOND,
            until_ms=single_at_ms,
            answers=1,
            failed=Counter(),
            broken=file.because,
        )
    instants: list[int] = []
    failed: Counter[str] = Counter()
    before: list[tuple[int, str, float]] = []
    health: list[HealthReading] = []
    for head, body in _scrapes(data, path):
        at_ms = round(head.t * MS_PER_SECOND)
        instants.append(at_ms)
        if head.status != _OK:
            failed[head.error or f"status {head.status}"] += 1
        elif head.same:
            for series, name, value in before:
                gathered.add(series, name, at_ms, value)
        else:
            text = body.decode(errors="replace")
            before = take_answer(gathered, text, at_ms)
            health += of_answer(text, at_ms, node=gathered.node)
    if not instants:
        message = f"{path}: no scrape can be read; expected lines #scrape before answers"
        raise RecordingError(message)
    found_ms = step_ms or _step_ms(instants)
    return Scraped(
        samples=gathered.samples(found_ms),
        step_ms=found_ms,
        until_ms=instants[-1] + found_ms,
        answers=len(instants) - failed.total(),
        failed=failed,
        broken=file.because,
        health=tuple(health),
    )


def _scrapes(data: bytes, path: Path) -> Iterator[tuple[Scrape, bytes]]:
    """Heads with their answers; what a broken end of the file cut off is left out."""
    place = 0
    while place < len(data):
        end = data.find(b"\n", place)
        line = data[place : end if end >= 0 else len(data)]
        try:
            head = _HEAD.decode(line.removeprefix(_MARK))
        except UNREADABLE as cause:
            if end < 0:
                return
            message = f"{path}: {line[:100]!r} at byte {place}: expected #scrape and a JSON object"
            raise RecordingError(message) from cause
        if head.size < 0 or instant_of_seconds(head.t) is None:
            message = (
                f"{path}: {line[:100]!r} at byte {place}: expected an instant as t, and bytes of 0 or more"
            )
            raise RecordingError(message)
        place = len(data) if end < 0 else end + 1
        size = 0 if head.same or head.status != _OK else head.size
        if place + size > len(data):
            return
        yield head, data[place : place + size]
        place += size


def _step_ms(instants: list[int]) -> int:
    """The usual distance of scrapes, to the second; a lone one counts as 15 s."""
    apart = [later - earlier for earlier, later in pairwise(instants)]
    if not apart:
        return 15 * MS_PER_SECOND
    return max(1, round(median(apart) / MS_PER_SECOND)) * MS_PER_SECOND
