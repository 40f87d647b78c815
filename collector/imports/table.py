"""Tables of jobs with columns of a site's own: CSV, or Parquet."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, TypeAlias

from collector.imports.mapping import TableMapping
from collector.imports.records import (
    NO_STAMP,
    Record,
    Values,
    csv_records,
    instant,
    length,
    number,
    parquet_records,
    text,
)
from collector.imports.row import (
    MILLI,
    NO_START,
    NO_SUBMISSION,
    Aside,
    Ending,
    JobRow,
    Read,
    contradiction,
    gpu_resources,
)
from domain.objects import Resources
from domain.window import MS_PER_SECOND

# Submission, start and end.
_Stay: TypeAlias = tuple[int | None, int | None, int | None]

NO_STATE: Final = "a state that the mapping does not explain"
NO_GPUS: Final = "a count of GPUs that is none"
NO_COUNT: Final = "a count of CPUs or nodes that is none"
_MOST_COUNT: Final = 1_000_000_000
NO_ID: Final = "no id"


def read_csv(
    lines: Iterable[bytes], mapping: TableMapping, *, name: str, is_open: Callable[[], bool] = lambda: False
) -> Iterator[Read]:
    """
    The jobs of a CSV; `is_open` as for its records.

    Raises:
        RecordingError: it is empty, or a column that is mapped is not there.
    """
    for record in csv_records(lines, mapping, name=name, is_open=is_open):
        yield record if isinstance(record, Aside) else _read(record, mapping, name)


def read_parquet(path: Path, mapping: TableMapping) -> Iterator[Read]:
    """
    The jobs of a Parquet file; a row's number counts from 1.

    Raises:
        RecordingError: it is no Parquet file, or a column that is mapped is not there.
    """
    for record in parquet_records(path, mapping):
        yield _read(record, mapping, path.name)


def _read(record: Record, mapping: TableMapping, name: str) -> Read:
    values, line, aside = record.values, record.line, record.aside
    try:
        (submit_ms, start_ms, end_ms), run_seconds, may_be_later = _instants(values, mapping)
        eligible_ms = _eligible(values, mapping, submit_ms)
    except (ValueError, OverflowError):
        return aside(NO_STAMP)
    if submit_ms is None:
        return aside(NO_SUBMISSION)
    job = text(values.get("id")) if "id" in values else f"{name}:{line}"
    if not job:
        return aside(NO_ID)
    word = text(values.get("state"))
    ending = _ending(mapping, word, told="state" in values, over=end_ms is not None)
    if ending is None:
        return aside(NO_STATE)
    if ending is Ending.SUCCEEDED and start_ms is None:
        return aside(NO_START)
    try:
        gpus = _gpus(values, mapping)
    except (ValueError, OverflowError, TypeError):
        return aside(NO_GPUS)
    try:
        milli_cpus, nodes = _count(values.get("cpus"), MILLI), _count(values.get("nodes")) or None
    except (ValueError, OverflowError, TypeError):
        return aside(NO_COUNT)
    row = JobRow(
        line=line,
        job=job,
        submit_ms=submit_ms,
        eligible_ms=eligible_ms,
        start_ms=start_ms,
        end_ms=None if ending is Ending.OPEN else end_ms,
        ending=ending,
        word=word,
        name=text(values.get("name")),
        team=text(values.get("team")),
        user=text(values.get("user")),
        queue=text(values.get("queue")),
        priority_class=text(values.get("priority_class")),
        node=text(values.get("node")),
        gpus=gpus,
        milli_cpus=milli_cpus,
        nodes=nodes,
        gpu_model=text(values.get("gpu_model")),
        told_seconds=run_seconds if start_ms is not None else None,
        cluster=text(values.get("cluster")),
        may_be_later=may_be_later,
    )
    because = contradiction(row)
    return aside(because) if because else row


def _eligible(values: Values, mapping: TableMapping, submit_ms: int | None) -> int | None:
    """When its owner stopped holding it back; in an hour that the clock shows twice not before it came."""
    if "eligible" not in values:
        return submit_ms
    first_ms = instant(values["eligible"], mapping)
    if first_ms is None or submit_ms is None or first_ms >= submit_ms:
        return first_ms
    return instant(values["eligible"], mapping, later=True)


def _instants(values: Values, mapping: TableMapping) -> tuple[_Stay, float | None, bool]:
    """
    Submission, start and end; the length of the run where a column tells it.

    And whether any of them may as well be an hour later.
    """
    wait, run = length(values.get("wait"), mapping), length(values.get("run"), mapping)
    if run is not None and run < 0:
        message = f"length {run:g}: expected at least 0"
        raise ValueError(message)
    (submit_ms, start_ms, end_ms), may_be_later = _unfolded(values, mapping, wait, run)
    if start_ms is None and submit_ms is not None:
        if wait is not None and wait >= 0:
            start_ms = submit_ms + round(wait * MS_PER_SECOND)
        elif mapping.starts_when_submitted:
            start_ms = submit_ms
    if end_ms is None and start_ms is not None and run is not None:
        end_ms = start_ms + round(run * MS_PER_SECOND)
    return (submit_ms, start_ms, end_ms), run, may_be_later


def _unfolded(
    values: Values, mapping: TableMapping, wait: float | None, run: float | None
) -> tuple[_Stay, bool]:
    """
    Submission, start and end as they are written, and whether one may as well be an hour later.

    Of an hour that the clock shows twice their order tells which was meant, and then the lengths that are
    told: what comes nearest to them, and of the equally near the earliest.
    """
    told = [_either(values.get(name), mapping) for name in ("submit", "start", "end")]
    choices = [_stay(choice) for choice in product(*told)]
    off = [_off(choice, wait, run) for choice in choices]
    return choices[off.index(min(off))], off.count(min(off)) > 1


def _either(value: Any, mapping: TableMapping) -> tuple[int | None, ...]:
    """The instants that a stamp may mean, the earlier first."""
    first_ms, second_ms = instant(value, mapping), instant(value, mapping, later=True)
    is_twice = first_ms is not None and second_ms is not None and first_ms < second_ms
    return (first_ms, second_ms) if is_twice else (first_ms,)


def _off(stay: _Stay, wait: float | None, run: float | None) -> tuple[int, float]:
    """How many of them come before what they follow, and how far they are from the lengths that are told."""
    submit_ms, start_ms, end_ms = stay
    known = [at_ms for at_ms in stay if at_ms is not None]
    apart = 0.0
    for from_ms, to_ms, seconds in ((submit_ms, start_ms, wait), (start_ms, end_ms, run)):
        if from_ms is not None and to_ms is not None and seconds is not None and seconds >= 0:
            apart += abs(to_ms - from_ms - seconds * MS_PER_SECOND)
    return sum(after < before for before, after in pairwise(known)), apart


def _stay(instants: Iterable[int | None]) -> _Stay:
    submit_ms, start_ms, end_ms = instants
    return submit_ms, start_ms, end_ms


def _ending(mapping: TableMapping, word: str, *, told: bool, over: bool) -> Ending | None:
    if not told:
        return Ending.UNKNOWN if over else Ending.OPEN
    return mapping.ending(word)


def _gpus(values: Values, mapping: TableMapping) -> Resources:
    gpus = number(values.get("gpus")) or 0
    share = number(values.get("share"))
    if share is not None and gpus == 1:
        gpus = share / mapping.share_of
    return gpu_resources(gpus)


def _count(value: Any, per_one: int = 1) -> int | None:
    """A number in `per_one` parts of one; tables write -1 for what they do not know."""
    count = number(value)
    if count is not None and count > _MOST_COUNT:
        message = f"{count}: expected at most {_MOST_COUNT:,}"
        raise ValueError(message)
    return None if count is None or count < 0 else round(count * per_one)
