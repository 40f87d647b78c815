"""
What a report is: sections of tables whose figures are those of metrics, with their limits.

The command line, the API and the weekly files all write the same report.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from domain.errors import DataError
from domain.metric import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of a report, in its column's unit; None with the reason where it is undefined."""

    value: float | None
    lower_bound: bool = False
    few: bool = False
    undefined_because: str = ""


Cell: TypeAlias = str | Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """
    A column of a table.

    `unit` is that of its figures, empty for texts; `metric` names the metric whose values they
    are, so that a reader finds its definition.
    """

    key: str
    title: str
    unit: str = ""
    metric: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """
    A table with its heading; rows are cells by the key of their column, and may leave some out.

    `note` says what the reader should know of it, `page` where the dashboard shows the same, and
    `window` over which time its figures look back, where that is not the report's.

    Raises:
        DataError: a row has a cell of no column.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    note: str = ""
    page: Page | None = None
    window: timedelta | None = None

    def __post_init__(self) -> None:
        known = {column.key for column in self.columns}
        for row in self.rows:
            if strangers := row.keys() - known:
                message = f"section {self.key}: cells {sorted(strangers)}, expected some of {sorted(known)}"
                raise DataError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    An answer to an admin's question. `lead` are the sentences to read first.

    `window` is None where every figure is a state of the instant.
    """

    name: str
    title: str
    as_of_ms: int
    window: timedelta | None
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
