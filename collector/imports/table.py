"""Tables of jobs with columns of a site's own: CSV, or Parquet."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

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
        submit_ms, start_ms, end_ms, run_seconds = _instants(values, mapping)
        eligible_ms = instant(values.get("eligible"), mapping) if "eligible" in values else submit_ms
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
    )
    because = contradiction(row)
    return aside(because) if because else row


def _instants(
    values: Values, mapping: TableMapping
) -> tuple[int | None, int | None, int | None, float | None]:
    """Submission, start, end, and the length of the run where a column tells it."""
    submit_ms = instant(values.get("submit"), mapping)
    start_ms = instant(values.get("start"), mapping)
    wait, run = length(values.get("wait"), mapping), length(values.get("run"), mapping)
    if run is not None and run < 0:
        message = f"length {run:g}: expected at least 0"
        raise ValueError(message)
    if start_ms is None and submit_ms is not None:
        if wait is not None and wait >= 0:
            start_ms = submit_ms + round(wait * MS_PER_SECOND)
        elif mapping.starts_when_submitted:
            start_ms = submit_ms
    end_ms = instant(values.get("end"), mapping)
    if end_ms is None and start_ms is not None and run is not None:
        end_ms = start_ms + round(run * MS_PER_SECOND)
    return submit_ms, start_ms, end_ms, run


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
