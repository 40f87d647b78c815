"""The formats in which a month is exported, and which one is asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from analytics.chargeback.month_statement import MonthStatement
from api.exports.comma_separated import comma_separated
from api.exports.detail import detail
from api.exports.focus import focus
from api.exports.parquet import parquet
from api.exports.sheets import statement_workbook
from api.parameters import nearest
from domain.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A format; `write` gives the file piece by piece, and refuses before the first one."""

    name: str
    media_type: str
    suffix: str
    about: str
    write: Callable[[MonthStatement], Iterator[bytes]]


def _csv(statement: MonthStatement) -> Iterator[bytes]:
    return comma_separated(detail(statement))


def _parquet(statement: MonthStatement) -> Iterator[bytes]:
    return parquet(detail(statement))


def _xlsx(statement: MonthStatement) -> Iterator[bytes]:
    return iter((statement_workbook(statement),))


def _focus(statement: MonthStatement) -> Iterator[bytes]:
    return comma_separated(focus(statement))


EXPORT_FORMATS: Final = {
    each.name: each
    for each in (
        ExportFormat(
            name="csv", media_type="text/csv", suffix="csv", about="every line, RFC 4180", write=_csv
        ),
        ExportFormat(
            name="parquet", media_type="application/vnd.apache.parquet", suffix="parquet",
            about="every line, with decimals", write=_parquet,
        ),
        ExportFormat(
            name="xlsx", media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            suffix="xlsx", about="a workbook: summary, detail, price book, reconciliation, method",
            write=_xlsx,
        ),
        ExportFormat(
            name="focus", media_type="text/csv", suffix="focus.csv",
            about="FOCUS 1.4 with split cost allocation, CSV", write=_focus,
        ),
    )
}  # fmt: skip


def export_format(name: str, *, named: str) -> ExportFormat:
    """
    The format of that name.

    Args:
        named: what the reader calls the parameter.

    Raises:
        UsageError: there is none; names the nearest.
    """
    found = EXPORT_FORMATS.get(name)
    if found is None:
        message = f"{named} {name!r}: {nearest(name, list(EXPORT_FORMATS))}"
        raise UsageError(message)
    return found


def file_name(statement: MonthStatement, form: ExportFormat) -> str:
    """A name that says which month it is, and which version of it: the hash's first digits, or `open`."""
    version = "open" if statement.closing is None else statement.closing.sha256[:12]
    return f"chargeback-{statement.month}-{version}.{form.suffix}"
