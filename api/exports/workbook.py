"""
Sheets as one XLSX workbook, the same bytes for the same values.

Texts are written as texts whatever they begin with, so none of them is a formula; there is no
formula in the workbook at all. Spreadsheets count in doubles, which keep 15 digits: an amount of
more is written as text with all its digits, so that no cent is lost.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import xlsxwriter

from api.exports.comma_separated import FORMULA_STARTS, decimal_text
from api.exports.table import Column, Kind, Row, Table, Value
from domain.errors import UsageError
from domain.window import format_instant

MOST_ROWS: Final = 1_048_575
_DOUBLE_DIGITS: Final = 15
# A cell of more is left out by the library.
_MOST_CHARACTERS: Final = 32_767
_WIDTHS: Final = {Kind.TEXT: 18, Kind.INSTANT: 25}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A sheet: sentences to read first, then a table."""

    name: str
    table: Table
    above: Sequence[str] = ()


def workbook(sheets: Iterable[Sheet], *, created: datetime) -> bytes:
    """
    The file.

    Args:
        created: what its properties say of when it was made; not the machine's time, which would differ
            each time.

    Raises:
        UsageError: a sheet has more rows than XLSX can hold.
    """
    file = io.BytesIO()
    options = {
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_numbers": False,
        "strings_to_urls": False,
    }
    with xlsxwriter.Workbook(file, options) as book:
        book.set_properties({"created": created.replace(tzinfo=None), "title": "GPU chargeback"})
        styles = _Styles(book)
        for sheet in sheets:
            _write(book.add_worksheet(sheet.name), sheet, styles)
    return file.getvalue()


class _Styles:
    """The formats of a workbook's cells; one that is asked for twice is the same."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._numbers: dict[int, Any] = {}
        self.head = book.add_format({"bold": True, "bottom": 1})
        self.day = book.add_format({"num_format": "yyyy-mm-dd"})
        # Editing the cell leaves it a text, too.
        self.inert = book.add_format({"quote_prefix": True})
        self.exact = book.add_format({"align": "right"})

    def number(self, digits: int) -> Any:
        if digits not in self._numbers:
            # Two decimals are always shown, and up to six where there are.
            decimals = f".{'0' * min(digits, 2)}{'#' * min(digits - 2, 4)}" if digits else ""
            self._numbers[digits] = self._book.add_format({"num_format": f"#,##0{decimals}"})
        return self._numbers[digits]


def _write(worksheet: Any, sheet: Sheet, styles: _Styles) -> None:
    columns = sheet.table.columns
    for place, column in enumerate(columns):
        worksheet.set_column(place, place, max(_WIDTHS.get(column.kind, 14), len(column.name) + 2))
    line = 0
    for sentence in sheet.above:
        _text(worksheet, line, 0, sentence, styles)
        line += 1
    line += 1 if sheet.above else 0
    for place, column in enumerate(columns):
        worksheet.write_string(line, place, column.name, styles.head)
    worksheet.freeze_panes(line + 1, 0)
    for row in sheet.table.rows:
        line += 1
        if line > MOST_ROWS:
            message = (
                f"sheet {sheet.name}: more rows than the {MOST_ROWS:,} that XLSX can hold; take csv or"
                " parquet, or filter by team"
            )
            raise UsageError(message)
        _cells(worksheet, line, row, columns, styles)


def _cells(worksheet: Any, line: int, row: Row, columns: Sequence[Column], styles: _Styles) -> None:
    for place, (column, value) in enumerate(zip(columns, row, strict=True)):
        if value is None or value == "":
            continue
        match column.kind:
            case Kind.HOURS:
                worksheet.write_number(line, place, float(value), styles.number(column.digits))
            case Kind.DECIMAL | Kind.INTEGER:
                _number(worksheet, line, place, Decimal(value), column.digits, styles)
            case Kind.DAY:
                worksheet.write_datetime(line, place, datetime.fromisoformat(str(value)), styles.day)
            case Kind.FLAG:
                worksheet.write_boolean(line, place, bool(value))
            case Kind.INSTANT:
                worksheet.write_string(line, place, format_instant(int(value)))
            case _:
                _text(worksheet, line, place, value, styles)


def _number(worksheet: Any, line: int, place: int, value: Decimal, digits: int, styles: _Styles) -> None:
    if fits_a_double(value):
        worksheet.write_number(line, place, float(value), styles.number(digits))
    else:
        worksheet.write_string(line, place, decimal_text(value, digits), styles.exact)


def fits_a_double(value: Decimal) -> bool:
    """
    Whether a spreadsheet keeps every digit.

    >>> fits_a_double(Decimal("9999999999999.99")), fits_a_double(Decimal("10000000000000.01"))
    (True, False)
    """
    return len(value.normalize().as_tuple().digits) <= _DOUBLE_DIGITS


def _text(worksheet: Any, line: int, place: int, value: Value, styles: _Styles) -> None:
    text = str(value)[:_MOST_CHARACTERS]
    worksheet.write_string(line, place, text, *([styles.inert] if text.startswith(FORMULA_STARTS) else []))
