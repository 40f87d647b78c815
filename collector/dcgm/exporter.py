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

from collector.dcgm.exposition import cut_in, readings
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

CUT_LINE: Final = "a last line without its end: its number may be cut"
CUT_ANSWER: Final = "the answer was cut in the middle of a line"
CUT_SCRAPE: Final = "a scrape whose answer is not all there: the file ends within it"
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

    Of a lone answer that was cut its whole lines count; one of several failed, as it does on the line.

    Args:
        path: the file; compressed as `.gz`, `.xz` or `.zst`, or not.
        step_ms: how far apart the scrapes were meant to be; None takes the median of what they were.
        single_at_ms: when a file without `#scrape` lines was read.

    Raises:
        RecordingError: the file holds no scrape.
    """
    file = CarefulFile(path)
    data = file.whole()
    gathered = Gathered(node=path.name.partition(".")[0])
    if not data.startswith(_MARK):
        broken = file.because
        if cut := cut_in(data):
            broken = broken or f"{path.name}: {cut}"
            data = data[: data.rfind(b"\n") + 1]
            gathered.set_aside[CUT_LINE] += 1
        text = data.decode(errors="replace")
        take_answer(gathered, text, single_at_ms)
        return Scraped(
            health=tuple(of_answer(text, single_at_ms, node=gathered.node)),
            samples=gathered.samples(step_ms or 15 * MS_PER_SECOND),
            step_ms=step_ms or 15 * MS_PER_SECOND,
            until_ms=single_at_ms,
            answers=1,
            failed=Counter(),
            broken=broken,
        )
    instants: list[int] = []
    failed: Counter[str] = Counter()
    before: list[tuple[int, str, float]] | None = []
    scrapes = _Scrapes(data, path)
    health: list[HealthReading] = []
    for head, body in scrapes:
        at_ms = round(head.t * MS_PER_SECOND)
        instants.append(at_ms)
        if head.status != _OK:
            failed[head.error or f"status {head.status}"] += 1
        elif (before is None) if head.same else cut_in(body):
            before = None
            failed[CUT_ANSWER] += 1
        elif head.same:
            for series, name, value in before or ():
                gathered.add(series, name, at_ms, value)
        else:
            text = body.decode(errors="replace")
            before = take_answer(gathered, text, at_ms)
            health += of_answer(text, at_ms, node=gathered.node)
    if not instants:
        message = f"{path}: no scrape can be read; expected lines #scrape before answers"
        raise RecordingError(message)
    broken = file.because
    if left := len(data) - scrapes.place:
        where = f"of the scrape at byte {scrapes.place:,} only {left:,} bytes are left"
        broken = broken or f"{path.name} is cut off: {where}"
        gathered.set_aside[CUT_SCRAPE] += 1
    found_ms = step_ms or _step_ms(instants)
    return Scraped(
        samples=gathered.samples(found_ms),
        step_ms=found_ms,
        until_ms=instants[-1] + found_ms,
        answers=len(instants) - failed.total(),
        failed=failed,
        broken=broken,
        health=tuple(health),
    )


class _Scrapes:
    """Heads with their answers; `place` is where the last whole one ends."""

    def __init__(self, data: bytes, path: Path) -> None:
        self.place = 0
        self._data = data
        self._path = path

    def __iter__(self) -> Iterator[tuple[Scrape, bytes]]:
        data = self._data
        while self.place < len(data):
            end = data.find(b"\n", self.place)
            line = data[self.place : end if end >= 0 else len(data)]
            head = self._head(line, is_last=end < 0)
            if head is None:
                return
            begin = len(data) if end < 0 else end + 1
            size = 0 if head.same or head.status != _OK else head.size
            if begin + size > len(data):
                return
            self.place = begin + size
            yield head, data[begin : begin + size]

    def _head(self, line: bytes, *, is_last: bool) -> Scrape | None:
        """What a line says of the answer after it; None where the file ends within it."""
        where = f"{self._path}: {line[:100]!r} at byte {self.place}"
        try:
            head: Scrape = _HEAD.decode(line.removeprefix(_MARK))
        except UNREADABLE as cause:
            if is_last:
                return None
            message = f"{where}: expected #scrape and a JSON object"
            raise RecordingError(message) from cause
        if head.size < 0 or instant_of_seconds(head.t) is None:
            message = f"{where}: expected an instant as t, and bytes of 0 or more"
            raise RecordingError(message)
        return head


def _step_ms(instants: list[int]) -> int:
    """The usual distance of scrapes, to the second; a lone one counts as 15 s."""
    apart = [later - earlier for earlier, later in pairwise(instants)]
    if not apart:
        return 15 * MS_PER_SECOND
    return max(1, round(median(apart) / MS_PER_SECOND)) * MS_PER_SECOND
