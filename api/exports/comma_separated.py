"""
A table as CSV by RFC 4180: a header, CRLF, UTF-8, amounts with all their decimals.

A text that a spreadsheet would take for a formula is made inert: it gets an apostrophe in front, as
OWASP advises (https://owasp.org/www-community/attacks/CSV_Injection). Numbers stay numbers, also
negative ones.
"""

import csv
import io
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

from api.exports.table import Column, Kind, Table, Value
from domain.window import format_instant

# The last four are read as the first four by spreadsheets in East Asian languages.
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
_BATCH: Final = 5_000


def inert(text: str) -> str:
    """
    The text, with an apostrophe in front where it could be a formula.

    >>> inert("=1+1"), inert("nlp-team")
    ("'=1+1", 'nlp-team')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def decimal_text(value: Decimal, digits: int) -> str:
    """
    An amount with so many decimals, never as a power of ten.

    >>> decimal_text(Decimal("1E-7"), 9), decimal_text(Decimal(4), 2)
    ('0.000000100', '4.00')
    """
    return f"{value:.{digits}f}"


def comma_separated(table: Table) -> Iterator[bytes]:
    """The file, piece by piece: what is in memory does not grow with the rows."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([column.name for column in table.columns])
    writers = [_writer(column) for column in table.columns]
    for batch in table.batches(_BATCH):
        writer.writerows(
            [None if value is None else write(value) for write, value in zip(writers, row, strict=True)]
            for row in batch
        )
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    if rest := text.getvalue():
        yield rest.encode()


def _writer(column: Column) -> Callable[[Value], str]:
    match column.kind:
        case Kind.DECIMAL | Kind.HOURS:
            return lambda value: decimal_text(Decimal(value or 0), column.digits)
        case Kind.INSTANT:
            return lambda value: format_instant(int(value or 0))
        case Kind.FLAG:
            return lambda value: "true" if value else "false"
        case Kind.TEXT:
            return lambda value: inert(str(value))
        case _:
            return str
