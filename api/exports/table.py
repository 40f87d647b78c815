"""A table on its way into a file: typed columns, and rows that come one after the other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import Final, TypeAlias

# As many digits as a decimal may have in Parquet, and so anywhere.
MAX_DIGITS: Final = 38
Value: TypeAlias = str | int | Decimal | bool | None
Row: TypeAlias = Sequence[Value]


class Kind(StrEnum):
    """
    What a column holds, and so how each format writes it.

    DECIMAL is an amount of money, of which every digit counts; HOURS are GPU-hours, rounded already. DAY is a
    date as 2026-10-01; INSTANT is whole milliseconds since the epoch.
    """

    TEXT = "text"
    DECIMAL = "decimal"
    HOURS = "hours"
    INTEGER = "integer"
    DAY = "day"
    INSTANT = "instant"
    FLAG = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; `digits` are a decimal's after the point, `about` says what it is."""

    name: str
    kind: Kind = Kind.TEXT
    digits: int = 0
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """
    Columns and rows, each a value per column; None is nothing known, and no value in any format.

    `rows` may be an iterator: a writer goes through it once and keeps a part of it only.
    """

    columns: Sequence[Column]
    rows: Iterable[Row]

    def batches(self, size: int) -> Iterator[list[Row]]:
        """The rows, so many at a time."""
        rows = iter(self.rows)
        while batch := list(islice(rows, size)):
            yield batch
