"""
Tables of jobs with columns of a site's own: CSV, or Parquet.

A CSV is read record by record, so that one that is cut off or has too many fields is set aside alone;
of a Parquet file only the columns that are mapped are read, a piece at a time.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeAlias

import polars as pl

from collector.imports.mapping import UNITS_MS, TableMapping, check_columns
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
from collector.imports.stamps import NO_INSTANT, epoch_ms, instant_ms, length_seconds
from domain.errors import RecordingError
from domain.objects import Resources
from domain.window import MS_PER_SECOND

RAGGED: Final = "another number of fields than there are columns"
BROKEN: Final = "a record that is no CSV"
NO_STAMP: Final = "a stamp or length that is none"
NO_STATE: Final = "a state that the mapping does not explain"
NO_GPUS: Final = "a count of GPUs that is none"
NO_COUNT: Final = "a count of CPUs or nodes that is none"
NO_ID: Final = "no id"
_PIECE_ROWS: Final = 20_000
_MOST_SAMPLE: Final = 300
_MOST_FIELD: Final = 1 << 20
_Values: TypeAlias = Mapping[str, Any]


def read_csv(lines: Iterable[bytes], mapping: TableMapping, *, name: str) -> Iterator[Read]:
    """
    The jobs of a CSV.

    Raises:
        RecordingError: it is empty, or a column that is mapped is not there.
    """
    csv.field_size_limit(_MOST_FIELD)
    texts = (raw.decode("utf-8-sig" if first else "utf-8", "replace") for first, raw in _firsts(lines))
    # A NUL byte ends the csv module's reading; it stands for nothing.
    cleaned = (text.replace("\0", "").rstrip("\r") + "\n" for text in texts)
    head = next(cleaned, "")
    delimiter = mapping.delimiter or _delimiter(head, mapping)
    header = next(csv.reader([head], delimiter=delimiter), [])
    check_columns(mapping, header, name=name)
    places = {thing: header.index(column) for thing, column in mapping.columns_used().items()}
    reader = csv.reader(cleaned, delimiter=delimiter)
    number = 1
    while True:
        number = reader.line_num + 2
        try:
            record = next(reader, None)
        except csv.Error:
            yield Aside(line=number, because=BROKEN)
            continue
        if record is None:
            return
        if not record:
            continue  # an empty line
        if len(record) != len(header):
            yield Aside(line=number, because=RAGGED, sample=delimiter.join(record)[:_MOST_SAMPLE])
            continue
        values = {thing: record[place] for thing, place in places.items()}
        yield _read(values, mapping, number, name)


def read_parquet(path: Path, mapping: TableMapping) -> Iterator[Read]:
    """
    The jobs of a Parquet file; a row's number counts from 1.

    Raises:
        RecordingError: it is no Parquet file, or a column that is mapped is not there.
    """
    used = mapping.columns_used()
    number = 0
    for piece in parquet_pieces(path, mapping, sorted(set(used.values()))):
        columns = {thing: piece[column].to_list() for thing, column in used.items()}
        things = tuple(columns)
        for values in zip(*columns.values(), strict=True):
            number += 1
            yield _read(dict(zip(things, values, strict=True)), mapping, number, path.name)


def parquet_pieces(path: Path, mapping: TableMapping, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """These columns of a Parquet file, some rows at a time."""
    try:
        frame = pl.scan_parquet(path)
        check_columns(mapping, frame.collect_schema().names(), name=path.name)
        yield from frame.select(columns).collect_batches(chunk_size=_PIECE_ROWS, maintain_order=True)
    except (OSError, pl.exceptions.PolarsError) as cause:
        message = f"{path}: cannot be read as Parquet ({cause}); expected a table of jobs"
        raise RecordingError(message) from cause


def _firsts(lines: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    first = True
    for line in lines:
        yield first, line
        first = False


def _delimiter(head: str, mapping: TableMapping) -> str:
    """The delimiter by which most of the columns that are mapped are found."""
    wanted = set(mapping.columns_used().values())

    def found(delimiter: str) -> int:
        return len(wanted & set(next(csv.reader([head], delimiter=delimiter), [])))

    return max((",", ";", "\t", "|"), key=found)


def _read(values: _Values, mapping: TableMapping, line: int, name: str) -> Read:
    def aside(because: str) -> Aside:
        sample = ", ".join(f"{thing} {value}" for thing, value in values.items() if not _is_nothing(value))
        return Aside(line=line, because=because, sample=sample[:_MOST_SAMPLE])

    try:
        submit_ms, start_ms, end_ms, run_seconds = _instants(values, mapping)
        eligible_ms = _instant(values.get("eligible"), mapping) if "eligible" in values else submit_ms
    except (ValueError, OverflowError):
        return aside(NO_STAMP)
    if submit_ms is None:
        return aside(NO_SUBMISSION)
    job = _text(values.get("id")) if "id" in values else f"{name}:{line}"
    if not job:
        return aside(NO_ID)
    word = _text(values.get("state"))
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
        milli_cpus, nodes = _count(values.get("cpus"), MILLI), _count(values.get("nodes"))
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
        name=_text(values.get("name")),
        team=_text(values.get("team")),
        user=_text(values.get("user")),
        queue=_text(values.get("queue")),
        priority_class=_text(values.get("priority_class")),
        node=_text(values.get("node")),
        gpus=gpus,
        gpu_model=_text(values.get("gpu_model")),
        milli_cpus=milli_cpus,
        nodes=nodes,
        told_seconds=run_seconds if start_ms is not None else None,
        cluster=_text(values.get("cluster")),
    )
    because = contradiction(row)
    return aside(because) if because else row


def _instants(
    values: _Values, mapping: TableMapping
) -> tuple[int | None, int | None, int | None, float | None]:
    """Submission, start, end, and the length of the run where a column tells it."""
    submit_ms = _instant(values.get("submit"), mapping)
    start_ms = _instant(values.get("start"), mapping)
    wait, run = _length(values.get("wait"), mapping), _length(values.get("run"), mapping)
    if run is not None and run < 0:
        message = f"length {run:g}: expected at least 0"
        raise ValueError(message)
    if start_ms is None and submit_ms is not None:
        if wait is not None and wait >= 0:
            start_ms = submit_ms + round(wait * MS_PER_SECOND)
        elif mapping.starts_when_submitted:
            start_ms = submit_ms
    end_ms = _instant(values.get("end"), mapping)
    if end_ms is None and start_ms is not None and run is not None:
        end_ms = start_ms + round(run * MS_PER_SECOND)
    return submit_ms, start_ms, end_ms, run


def _ending(mapping: TableMapping, word: str, *, told: bool, over: bool) -> Ending | None:
    if not told:
        return Ending.UNKNOWN if over else Ending.OPEN
    return mapping.ending(word)


def _gpus(values: _Values, mapping: TableMapping) -> Resources:
    gpus = _number(values.get("gpus")) or 0
    share = _number(values.get("share"))
    if share is not None and gpus == 1:
        gpus = share / mapping.share_of
    return gpu_resources(gpus)


def _count(value: Any, per_one: int = 1) -> int | None:
    """A number in `per_one` parts of one; tables write -1 for what they do not know."""
    number = _number(value)
    return None if number is None or number < 0 else round(number * per_one)


def _instant(value: Any, mapping: TableMapping) -> int | None:
    if _is_nothing(value):
        return None
    if isinstance(value, datetime | date):
        return instant_ms(value.isoformat(), mapping.zone)
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text)
        except ValueError:
            return instant_ms(text, mapping.zone)
    else:
        number = float(value)
    if number < 0:
        return None  # tables write -1 for what they do not know
    return epoch_ms(number, scale=UNITS_MS[mapping.time.unit], origin_ms=mapping.origin_ms)


def _length(value: Any, mapping: TableMapping) -> float | None:
    """Seconds."""
    if _is_nothing(value):
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str) and ":" in value:
        return length_seconds(value)
    return _finite(float(value) * UNITS_MS[mapping.time.length] / MS_PER_SECOND)


def _number(value: Any) -> float | None:
    return None if _is_nothing(value) else _finite(float(value))


def _finite(number: float) -> float:
    if not abs(number) < 1e15:
        message = f"{number}: expected a finite number"
        raise ValueError(message)
    return number


def _is_nothing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in NO_INSTANT
    return isinstance(value, float | Decimal) and math.isnan(value)


def _text(value: Any) -> str:
    """A value as a text; a whole number in a column of floats is written as one."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
