"""
What a Prometheus answers to `query_range`, as readings: from the line, or saved in files.

A value is a text there, `NaN` and `+Inf` included. Native histograms are no GPU metric.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from collector.dcgm.health import of_series
from collector.dcgm.samples import Gathered, Samples, is_wanted
from collector.unpacking import CarefulFile
from domain.errors import RecordingError
from domain.gpu_fault import HEALTH_FIELDS, HealthReading
from domain.window import MS_PER_SECOND, instant_of_seconds, is_instant

BAD_VALUE: Final = "a value or an instant of a series that is none"
NOT_KEPT: Final = "a metric that is not kept"
_JOB: Final = re.compile(r'job="([^"]*)"')
_INDEX: Final = "index.json"
_USUAL_STEP_MS: Final = 15 * MS_PER_SECOND


class Series(msgspec.Struct, kw_only=True):
    """One series of an answer: labels, and values as [epoch seconds, text]."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, kw_only=True):
    result: list[Series] = []


class _Answer(msgspec.Struct, kw_only=True):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


class _Saved(msgspec.Struct, kw_only=True):
    """A line of `index.json`: start, end and step in seconds."""

    file: str
    query: str
    start: float
    step: float


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_SAVED: Final = msgspec.json.Decoder(list[_Saved])


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    The samples of one stretch of time, of one source; readings before `until_ms` are in it.

    `lacking` says why some may be missing all the same; empty where it is whole.
    """

    source: str
    until_ms: int
    samples: Samples
    health: tuple[HealthReading, ...] = ()
    lacking: str = ""

    def cut(self, at_ms: int) -> "tuple[Part, Part]":
        """The samples before an instant, with what was set aside and the health; and the rest."""
        frame = self.samples.frame
        is_before = frame["at_ms"] < at_ms
        before, after = frame.filter(is_before), frame.filter(~is_before)
        first = Samples(before, self.samples.set_aside)
        return (
            replace(self, until_ms=min(self.until_ms, at_ms), samples=first),
            replace(self, samples=Samples(after, Counter()), health=()),
        )


def series_in(result: object) -> list[Series]:
    """
    The series of an answer's `result` as a JSON library gives it.

    Raises:
        RecordingError: it is not the result of a range query.
    """
    try:
        return msgspec.convert(result, list[Series])
    except msgspec.ValidationError as cause:
        message = f"an answer of Prometheus: {cause}; expected the result of a range query"
        raise RecordingError(message) from cause


def take_series(gathered: Gathered, answered: Iterable[Series]) -> int:
    """Gather the readings of these series; gives the latest instant among them, or 0."""
    latest_ms = 0
    for series in answered:
        name = series.metric.get("__name__", "")
        if name in HEALTH_FIELDS:
            continue
        if not is_wanted(name):
            gathered.set_aside[NOT_KEPT] += len(series.values)
            continue
        number = gathered.series(series.metric)
        if number is None or not series.values:
            continue
        instants, values = _read_values(series.values)
        if len(values) < len(series.values):
            gathered.set_aside[BAD_VALUE] += len(series.values) - len(values)
        gathered.add_all(number, name, instants, values)
        latest_ms = max(latest_ms, max(instants, default=0))
    return latest_ms


def _read_values(values: list[tuple[float, str]]) -> tuple[list[int], list[float]]:
    """Instants, and numbers, of those that have both."""
    try:
        instants = [round(at * MS_PER_SECOND) for at, _ in values]
        numbers = [float(value) for _, value in values]
    except (ValueError, OverflowError):
        return _one_by_one(values)
    if is_instant(min(instants)) and is_instant(max(instants)):
        return instants, numbers
    return _one_by_one(values)


def _one_by_one(values: list[tuple[float, str]]) -> tuple[list[int], list[float]]:
    instants, numbers = [], []
    for at, value in values:
        at_ms = instant_of_seconds(at)
        try:
            number = float(value)
        except ValueError:
            continue
        if at_ms is not None:
            instants.append(at_ms)
            numbers.append(number)
    return instants, numbers


def read_saved(paths: Iterable[Path], *, step_ms: int | None, source: str | None = None) -> Iterator[Part]:
    """
    The samples of saved answers, in parts.

    Args:
        paths: files, or folders with answers. An `index.json` in a folder tells each file's query, start
            and step; without one, all of a folder's answers are one part.
        step_ms: the queries' step, where no index says; None takes the smallest distance of two values.
        source: only that one.

    Raises:
        RecordingError: a file is no answer to a range query, or says that the query failed.
    """
    for path in paths:
        index = path / _INDEX
        if path.is_dir() and index.exists():
            yield from _indexed(path, index, source)
            continue
        files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
        yield from _part(files, source or "prometheus", step_ms)


def _indexed(folder: Path, index: Path, source: str | None) -> Iterator[Part]:
    try:
        saved = _SAVED.decode(index.read_bytes())
    except msgspec.DecodeError as cause:
        message = f"{index}: {cause}; expected a list of saved answers"
        raise RecordingError(message) from cause
    parts: dict[tuple[str, float, float], list[Path]] = {}
    for one in saved:
        name = re.split(r"[{\s]", one.query, maxsplit=1)[0]
        job = _JOB.search(one.query)
        of = f"prometheus/{job[1]}" if job else "prometheus"
        if (is_wanted(name) or name in HEALTH_FIELDS) and source in (None, of):
            parts.setdefault((of, one.start, one.step), []).append(folder / one.file)
    for (of, _, step), files in sorted(parts.items()):
        yield from _part(files, of, round(step * MS_PER_SECOND))


def _part(files: Iterable[Path], source: str, step_ms: int | None) -> Iterator[Part]:
    gathered, latest_ms, smallest_ms = Gathered(), 0, step_ms
    health: list[HealthReading] = []
    for path in files:
        answered = _read(path)
        latest_ms = max(latest_ms, take_series(gathered, answered))
        health += of_series(answered)
        if step_ms is None:
            smallest_ms = min(filter(None, (smallest_ms, _smallest_ms(answered))), default=None)
    if len(gathered) or gathered.set_aside or health:
        used_ms = smallest_ms or _USUAL_STEP_MS
        yield Part(
            source=source,
            until_ms=latest_ms + 1,
            samples=gathered.samples(used_ms),
            health=tuple(health),
        )


def _read(path: Path) -> list[Series]:
    try:
        answer = _ANSWER.decode(CarefulFile(path).whole())
    except msgspec.DecodeError as cause:
        message = f"{path}: {cause}; expected the answer to a range query"
        raise RecordingError(message) from cause
    if answer.status != "success":
        message = f"{path}: the query failed: {answer.error}; expected an answer with values"
        raise RecordingError(message)
    return answer.data.result


def _smallest_ms(answered: Iterable[Series]) -> int | None:
    apart = (
        round((later[0] - earlier[0]) * MS_PER_SECOND)
        for series in answered
        for earlier, later in pairwise(series.values)
    )
    return min((each for each in apart if each > 0), default=None)


def counts(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """What was set aside in all of them."""
    return sum((Counter(part) for part in parts), Counter())
