"""A table as Parquet: amounts are decimals, instants are timestamps in UTC, days are dates."""

import io
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from api.exports.table import MAX_DIGITS, Column, Kind, Row, Table

_ROWS_OF_A_GROUP: Final = 20_000


def parquet(table: Table) -> Iterator[bytes]:
    """The file, piece by piece: a group of rows is in memory, not all of them."""
    schema = pa.schema([pa.field(column.name, _type(column)) for column in table.columns])
    taken = _Taken()
    with pq.ParquetWriter(taken, schema, compression="zstd") as writer:
        for batch in table.batches(_ROWS_OF_A_GROUP):
            writer.write_batch(_record_batch(table, batch, schema))
            yield taken.pieces()
    yield taken.pieces()


def _record_batch(table: Table, rows: list[Row], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(map(_reader(column), values), type=field.type)
        for column, values, field in zip(table.columns, columns, schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)


def _type(column: Column) -> Any:
    types: dict[Kind, Callable[[], Any]] = {
        Kind.TEXT: pa.string,
        Kind.INTEGER: lambda: pa.decimal128(MAX_DIGITS, 0),  # GPU-time in whole units outgrows 64 bits
        Kind.DECIMAL: lambda: pa.decimal128(MAX_DIGITS, column.digits),
        Kind.HOURS: lambda: pa.decimal128(MAX_DIGITS, column.digits),
        Kind.DAY: pa.date32,
        Kind.INSTANT: lambda: pa.timestamp("ms", tz="UTC"),
        Kind.FLAG: pa.bool_,
    }
    return types[column.kind]()


def _reader(column: Column) -> Callable[[Any], Any]:
    if column.kind is Kind.DAY:
        return lambda day: date.fromisoformat(day) if day else None
    return lambda value: value


class _Taken(io.RawIOBase):
    """What the writer has written since it was asked last; it never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._position = 0

    @override
    def writable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._position

    @override
    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def pieces(self) -> bytes:
        """All parts in one; they are forgotten."""
        whole = b"".join(self._parts)
        self._parts.clear()
        return whole
