"""
Records of tables with columns of a site's own, CSV or Parquet, and what their fields say.

A CSV is read record by record, so that one that is cut off or has too many fields is set aside alone;
of a Parquet file only the columns that are mapped are read, a piece at a time.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import polars as pl

from collector.imports.mapping import UNITS_MS, AnyLayout, check_columns
from collector.imports.row import Aside
from collector.imports.stamps import NO_INSTANT, epoch_ms, instant_ms, length_seconds
from domain.errors import RecordingError
from domain.window import MS_PER_SECOND

RAGGED: Final = "another number of fields than there are columns"
BROKEN: Final = "a record that is no CSV"
NO_STAMP: Final = "a stamp or length that is none"
_PIECE_ROWS: Final = 20_000
_MOST_SAMPLE: Final = 300
_MOST_FIELD: Final = 1 << 20
Values: TypeAlias = Mapping[str, Any]


class Record(NamedTuple):
    """One record: its line, and the value of each thing that is mapped."""

    line: int
    values: Values

    def aside(self, because: str) -> Aside:
        """The record as one that is set aside."""
        told = ", ".join(f"{thing} {value}" for thing, value in self.values.items() if not is_nothing(value))
        return Aside(line=self.line, because=because, sample=told[:_MOST_SAMPLE])


def csv_records(lines: Iterable[bytes], layout: AnyLayout, *, name: str) -> Iterator[Record | Aside]:
    """
    The records of a CSV.

    Raises:
        RecordingError: it is empty, or a column that is mapped is not there.
    """
    csv.field_size_limit(_MOST_FIELD)
    texts = (raw.decode("utf-8-sig" if first else "utf-8", "replace") for first, raw in _firsts(lines))
    # A NUL byte ends the csv module's reading; it stands for nothing.
    cleaned = (text.replace("\0", "").rstrip("\r") + "\n" for text in texts)
    head = next(cleaned, "")
    delimiter = layout.delimiter or _delimiter(head, layout)
    header = next(csv.reader([head], delimiter=delimiter), [])
    check_columns(layout, header, name=name)
    places = {thing: header.index(column) for thing, column in layout.columns_used().items()}
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
        yield Record(number, {thing: record[place] for thing, place in places.items()})


def parquet_records(path: Path, layout: AnyLayout) -> Iterator[Record]:
    """
    The records of a Parquet file; a record's number counts from 1.

    Raises:
        RecordingError: it is no Parquet file, or a column that is mapped is not there.
    """
    used = layout.columns_used()
    number = 0
    for piece in _parquet_pieces(path, layout):
        columns = {thing: piece[column].to_list() for thing, column in used.items()}
        things = tuple(columns)
        for values in zip(*columns.values(), strict=True):
            number += 1
            yield Record(number, dict(zip(things, values, strict=True)))


def _parquet_pieces(path: Path, layout: AnyLayout) -> Iterator[pl.DataFrame]:
    """The columns of a Parquet file that are mapped, some rows at a time."""
    columns = sorted(set(layout.columns_used().values()))
    try:
        frame = pl.scan_parquet(path)
        check_columns(layout, frame.collect_schema().names(), name=path.name)
        yield from frame.select(columns).collect_batches(chunk_size=_PIECE_ROWS, maintain_order=True)
    except (OSError, pl.exceptions.PolarsError) as cause:
        message = f"{path}: cannot be read as Parquet ({cause}); expected a table with columns"
        raise RecordingError(message) from cause


def _firsts(lines: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    first = True
    for line in lines:
        yield first, line
        first = False


def _delimiter(head: str, layout: AnyLayout) -> str:
    """The delimiter by which most of the columns that are mapped are found."""
    wanted = set(layout.columns_used().values())

    def found(delimiter: str) -> int:
        return len(wanted & set(next(csv.reader([head], delimiter=delimiter), [])))

    return max((",", ";", "\t", "|"), key=found)


def instant(value: Any, layout: AnyLayout) -> int | None:
    """
    Milliseconds since the epoch; None where the field says nothing, or a number below 0.

    Raises:
        ValueError: it is no stamp.
    """
    if is_nothing(value):
        return None
    if isinstance(value, datetime | date):
        return instant_ms(value.isoformat(), layout.zone)
    if isinstance(value, str):
        text = value.strip()
        try:
            told = float(text)
        except ValueError:
            return instant_ms(text, layout.zone)
    else:
        told = float(value)
    if told < 0:
        return None  # tables write -1 for what they do not know
    return epoch_ms(told, scale=UNITS_MS[layout.time.unit], origin_ms=layout.origin_ms)


def length(value: Any, layout: AnyLayout) -> float | None:
    """
    Seconds; None where the field says nothing.

    Raises:
        ValueError: it is no length.
    """
    if is_nothing(value):
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str) and ":" in value:
        return length_seconds(value)
    return _finite(float(value) * UNITS_MS[layout.time.length] / MS_PER_SECOND)


def number(value: Any) -> float | None:
    """
    A number; None where the field says nothing.

    Raises:
        ValueError: it is no number, or no finite one.
        TypeError: it is not even a text.
    """
    return None if is_nothing(value) else _finite(float(value))


def text(value: Any) -> str:
    """A value as a text; a whole number in a column of floats is written as one."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def is_nothing(value: Any) -> bool:
    """Whether a field says nothing: it is empty, or a word for that."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in NO_INSTANT
    return isinstance(value, float | Decimal) and math.isnan(value)


def _finite(told: float) -> float:
    if not abs(told) < 1e15:
        message = f"{told}: expected a finite number"
        raise ValueError(message)
    return told
