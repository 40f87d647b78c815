"""
Tables of what a site counted in its queues, for example once a minute: jobs and GPUs, running and waiting.

Such counts are somebody else's measurements. No workload can be made of them.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from collector.imports.mapping import Layout
from collector.imports.records import (
    NO_STAMP,
    Record,
    Values,
    csv_records,
    instant,
    number,
    parquet_records,
    text,
)
from collector.imports.row import Aside
from domain.errors import ProductError, SettingsError
from domain.quantity import MICRO_PER_GPU
from domain.queue_state import Counts
from domain.window import MS_PER_SECOND, parse_duration

NO_QUEUE: Final = "no queue"
NO_TIME: Final = "when it was counted is not told"
NO_COUNT: Final = "a count that is none"
TOO_MUCH: Final = "the parts are more than their total"
_MOST: Final = 10**9
_LONGEST_STEP: Final = timedelta(days=1)


class StateColumns(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """
    The table's column for each thing; `at`, `queue` and a count are needed.

    `running_jobs`, `waiting_jobs` and their `jobs`; GPUs that are held, idle, waited for, and their
    `total_gpus`.
    """

    at: str
    queue: str
    cluster: str | None = None
    running_jobs: str | None = None
    waiting_jobs: str | None = None
    jobs: str | None = None
    held_gpus: str | None = None
    waiting_gpus: str | None = None
    idle_gpus: str | None = None
    total_gpus: str | None = None


_PLACES: Final = frozenset({"at", "queue", "cluster"})


class StateMapping(Layout[StateColumns], forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How a table of states is read: each row stands from its instant on for a `step`."""

    step: str = "1m"

    @property
    def step_ms(self) -> int:
        """How long a row stands."""
        return parse_duration(self.step) // timedelta(milliseconds=1)


class StateRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a row says of a queue at an instant; `cluster` is empty where no column tells it."""

    line: int
    cluster: str
    queue: str
    at_ms: int
    counts: Counts


StateRead: TypeAlias = StateRow | Aside


def state_mapping_of(written: object, *, name: str) -> StateMapping:
    """
    The mapping that a file holds.

    Raises:
        SettingsError: a key is unknown, one is missing, or a value makes no sense.
    """
    try:
        mapping = msgspec.convert(written, StateMapping)
        _ = (mapping.zone, mapping.origin_ms, mapping.separator)
        step_ms = mapping.step_ms
    except (msgspec.ValidationError, ValueError, ProductError) as cause:
        message = (
            f"{name}: {cause}; expected columns (with at, queue and a count), and where they differ step,"
            " time, delimiter"
        )
        raise SettingsError(message) from cause
    if not MS_PER_SECOND <= step_ms <= _LONGEST_STEP // timedelta(milliseconds=1):
        message = f"{name}, step = {mapping.step}: expected a length between 1s and 1d, for example 1m"
        raise SettingsError(message)
    if not mapping.columns_used().keys() - _PLACES:
        message = f"{name}, columns: nothing is counted; expected one of waiting_jobs, held_gpus and others"
        raise SettingsError(message)
    return mapping


def read_state_csv(
    lines: Iterable[bytes], mapping: StateMapping, *, name: str, is_open: Callable[[], bool] = lambda: False
) -> Iterator[StateRead]:
    """
    The rows of a CSV; `is_open` as for its records.

    Raises:
        RecordingError: it is empty, or a column that is mapped is not there.
    """
    for record in csv_records(lines, mapping, name=name, is_open=is_open):
        yield record if isinstance(record, Aside) else _read(record, mapping)


def read_state_parquet(path: Path, mapping: StateMapping) -> Iterator[StateRead]:
    """
    The rows of a Parquet file; a row's number counts from 1.

    Raises:
        RecordingError: it is no Parquet file, or a column that is mapped is not there.
    """
    for record in parquet_records(path, mapping):
        yield _read(record, mapping)


def _read(record: Record, mapping: StateMapping) -> StateRead:
    values = record.values
    try:
        at_ms = instant(values["at"], mapping)
    except (ValueError, OverflowError):
        return record.aside(NO_STAMP)
    if at_ms is None:
        return record.aside(NO_TIME)
    queue = text(values["queue"])
    if not queue:
        return record.aside(NO_QUEUE)
    try:
        counts = _counts(values)
    except (ValueError, OverflowError, TypeError):
        return record.aside(NO_COUNT)
    if counts is None:
        return record.aside(TOO_MUCH)
    return StateRow(
        line=record.line, cluster=text(values.get("cluster")), queue=queue, at_ms=at_ms, counts=counts
    )


def _counts(values: Values) -> Counts | None:
    """What is counted; a part that is not told follows from the others. None: they exceed their total."""
    running, waiting = _whole(values.get("running_jobs"), 1), _whole(values.get("waiting_jobs"), 1)
    running, waiting, jobs = _completed(running, waiting, _whole(values.get("jobs"), 1))
    held, idle = (_whole(values.get(name), MICRO_PER_GPU) for name in ("held_gpus", "idle_gpus"))
    held, idle, total = _completed(held, idle, _whole(values.get("total_gpus"), MICRO_PER_GPU))
    for one, other, together in ((running, waiting, jobs), (held, idle, total)):
        if together is not None and (one or 0) + (other or 0) > together:
            return None
    return Counts(
        running_workloads=running,
        waiting_workloads=waiting,
        held_micro_gpus=held,
        waiting_micro_gpus=_whole(values.get("waiting_gpus"), MICRO_PER_GPU),
        idle_micro_gpus=idle,
        total_micro_gpus=total,
    )


def _completed(
    one: int | None, other: int | None, together: int | None
) -> tuple[int | None, int | None, int | None]:
    """
    Two parts and their total, with the one of the three that was not told.

    >>> _completed(3, None, 8), _completed(3, None, None), _completed(9, None, 8)
    ((3, 5, 8), (3, None, None), (9, None, 8))
    """
    if together is None:
        return one, other, None if one is None or other is None else one + other
    if other is None and one is not None and one <= together:
        return one, together - one, together
    if one is None and other is not None and other <= together:
        return together - other, other, together
    return one, other, together


def _whole(value: object, unit: int) -> int | None:
    told = number(value)
    if told is None:
        return None
    if not 0 <= told <= _MOST:
        message = f"{told:g}: expected a count"
        raise ValueError(message)
    return round(told * unit)
