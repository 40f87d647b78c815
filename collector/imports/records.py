"""
Records of tables with columns of a site's own, CSV or Parquet, and what their fields say.

A CSV is read record by record, so that one that is cut off or has too many fields is set aside alone:
a quote that is never closed costs its own line, and not those after it. Of a Parquet file only the
columns that are mapped are read, a piece at a time.
"""

import csv
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from collector.imports.mapping import UNITS_MS, AnyLayout, check_columns
from collector.imports.row import Aside
from collector.imports.stamps import NO_INSTANT, epoch_ms, instant_ms, length_seconds
from domain.errors import RecordingError
from domain.window import MS_PER_SECOND

RAGGED: Final = "another number of fields than there are columns"
BROKEN: Final = "a record that is no CSV"
NO_STAMP: Final = "a stamp or length that is none"
NO_END: Final = "the last line has no end: its last field may be cut; end it with a newline if it is whole"
_PIECE_ROWS: Final = 20_000
_MOST_SAMPLE: Final = 300
_MOST_FIELD: Final = 1 << 20
# What the readers raise for a file that is none, or broken: also at names of columns, and in the middle.
_NO_PARQUET: Final = (
    OSError, UnicodeDecodeError, pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
Values: TypeAlias = Mapping[str, Any]


class Record(NamedTuple):
    """One record: its line, and the value of each thing that is mapped."""

    line: int
    values: Values

    def aside(self, because: str) -> Aside:
        """The record as one that is set aside."""
        told = ", ".join(f"{thing} {value}" for thing, value in self.values.items() if not is_nothing(value))
        return Aside(line=self.line, because=because, sample=told[:_MOST_SAMPLE])


def csv_records(
    lines: Iterable[bytes], layout: AnyLayout, *, name: str, is_open: Callable[[], bool] = lambda: False
) -> Iterator[Record | Aside]:
    """
    The records of a CSV.

    Args:
        lines: of the file, without their ends.
        layout: which columns are read.
        name: of the file, for messages.
        is_open: whether the line that was given last has no end. The last line of a CSV may have none
            (RFC 4180, 2.2), and of one that was cut in its last field nobody sees it: so that line
            counts only where its last field is not read.

    Raises:
        RecordingError: it is empty, or a column that is mapped is not there.
    """
    csv.field_size_limit(_MOST_FIELD)
    texts = (raw.decode("utf-8-sig" if first else "utf-8", "replace") for first, raw in _firsts(lines))
    # A NUL byte ends the csv module's reading; it stands for nothing.
    source = _Again(text.replace("\0", "").rstrip("\r") + "\n" for text in texts)
    head = next(source, "")
    try:
        delimiter = layout.separator or _delimiter(head, layout)
        header = next(csv.reader([head], delimiter=delimiter), [])
    except csv.Error as cause:
        message = f"{name}: the first line is no CSV ({cause}): {head[:120]!r}; expected names of columns"
        raise RecordingError(message) from cause
    check_columns(layout, header, name=name)
    places = {thing: header.index(column) for thing, column in layout.columns_used().items()}
    ends_unread = len(header) - 1 not in places.values()
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    while True:
        number = source.begin()
        because = RAGGED
        try:
            record = next(reader, None)
        except csv.Error:
            because = BROKEN
            record = _alone(source.first, delimiter)
        if record is None:
            return
        if not record:
            continue  # an empty line
        if any(len(_alone(line, delimiter)) == len(header) for line in source.others):
            # A quote that was never closed swallowed records up to the next one.
            record, because = [], BROKEN
        if len(record) != len(header):
            source.again()
            yield Aside(line=number, because=because, sample=source.first.rstrip("\n")[:_MOST_SAMPLE])
            continue
        if because == BROKEN:
            source.again()
        if source.is_read and is_open() and not ends_unread:
            yield Aside(line=number, because=NO_END, sample=source.first.rstrip("\n")[:_MOST_SAMPLE])
            continue
        yield Record(number, {thing: record[place] for thing, place in places.items()})


class _Again:
    """Lines of which those after the first of a record may be read again, if it was none."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._waiting: deque[str] = deque()
        self._taken: list[str] = []
        self._number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else next(self._lines)
        self._taken.append(line)
        return line

    def begin(self) -> int:
        """A record begins here; gives the number of its first line."""
        self._number += len(self._taken)
        self._taken.clear()
        return self._number + 1

    @property
    def first(self) -> str:
        """The first line of the record."""
        return self._taken[0] if self._taken else ""

    @property
    def others(self) -> list[str]:
        """Its further lines."""
        return self._taken[1:]

    @property
    def is_read(self) -> bool:
        """Whether no line waits to be read again."""
        return not self._waiting

    def again(self) -> None:
        """Read all lines of the record but its first one again."""
        self._waiting.extendleft(reversed(self._taken[1:]))
        del self._taken[1:]


def _alone(line: str, delimiter: str) -> list[str]:
    """The fields of a line by itself, where blanks or letters beside quotes are its only fault."""
    if line.count('"') % 2:
        return [line]
    try:
        record = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return [line]
    is_closed = not any("\n" in field for field in record)
    return record if is_closed else [line]


def parquet_records(path: Path, layout: AnyLayout) -> Iterator[Record]:
    """
    The records of a Parquet file; a record's number counts from 1.

    Raises:
        RecordingError: it is no Parquet file, or a column that is mapped is not there.
    """
    used = layout.columns_used()
    number = 0
    for piece in _parquet_pieces(path, layout):
        columns = {thing: _values(piece[column]) for thing, column in used.items()}
        things = tuple(columns)
        for values in zip(*columns.values(), strict=True):
            number += 1
            yield Record(number, dict(zip(things, values, strict=True)))


def _parquet_pieces(path: Path, layout: AnyLayout) -> Iterator[pl.DataFrame]:
    """The columns of a Parquet file that are mapped, some rows at a time."""
    columns = sorted(set(layout.columns_used().values()))
    try:
        schema = pq.read_schema(path)
        check_columns(layout, schema.names, name=path.name)
        # Polars ends the process where a damaged page tells a length that is none.
        for batch in pq.ParquetFile(path).iter_batches(batch_size=_PIECE_ROWS, columns=columns):
            table = pa.Table.from_batches([batch])
            table.validate(full=True)  # texts that are none, among others
            plain = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
            yield pl.DataFrame(table if plain == table.schema else table.cast(plain, safe=False))
    except _NO_PARQUET as cause:
        message = f"{path}: cannot be read as Parquet ({cause}); expected a table with columns"
        raise RecordingError(message) from cause


def _plain(given: pa.DataType) -> pa.DataType:
    """
    The type as which a column is read: Polars knows no zone such as +05:30, and no decimal so long.

    >>> _plain(pa.timestamp("us", tz="+05:30")), _plain(pa.decimal256(60, 10)), _plain(pa.int8())
    (TimestampType(timestamp[us, tz=UTC]), DataType(double), DataType(int8))
    """
    if pa.types.is_timestamp(given) and given.tz is not None and given.tz[:1] in {"+", "-"}:
        return pa.timestamp(given.unit, tz="UTC")
    return pa.float64() if pa.types.is_decimal256(given) else given


def _values(column: pl.Series) -> list[Any]:
    """The values of a column; texts that were written without saying that they are some are texts too."""
    if column.dtype == pl.Binary:
        return [None if value is None else value.decode("utf-8", "replace") for value in column]
    return column.to_list()


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


def instant(value: Any, layout: AnyLayout, *, later: bool = False) -> int | None:
    """
    Milliseconds since the epoch; None where the field says nothing, or a number below 0.

    In an hour that the clock shows twice it is the earlier one, or the later one where `later` says so.

    Raises:
        ValueError: it is no stamp.
    """
    if is_nothing(value):
        return None
    if isinstance(value, datetime | date):
        return instant_ms(value.isoformat(), layout.zone, later=later)
    if isinstance(value, str):
        text = value.strip()
        try:
            told = float(text)
        except ValueError:
            return instant_ms(text, layout.zone, later=later)
    else:
        told = _as_number(value)
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
    if isinstance(value, time):
        return length_seconds(value.isoformat())
    if isinstance(value, str) and ":" in value:
        return length_seconds(value)
    return _finite(_as_number(value) * UNITS_MS[layout.time.length] / MS_PER_SECOND)


def number(value: Any) -> float | None:
    """
    A number; None where the field says nothing.

    Raises:
        ValueError: it is no number, or no finite one.
    """
    return None if is_nothing(value) else _finite(_as_number(value))


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


def _as_number(value: Any) -> float:
    """A value of any type that a table may have, as a number; ValueError where it is none."""
    try:
        return float(value)
    except TypeError as cause:
        message = f"{value!r:.80}: expected a number"
        raise ValueError(message) from cause


def _finite(told: float) -> float:
    if not abs(told) < 1e15:
        message = f"{told}: expected a finite number"
        raise ValueError(message)
    return told
