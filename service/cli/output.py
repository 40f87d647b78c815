"""Writes a document in the format that was asked for. Figures go to stdout, remarks to stderr."""

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from api.answers import Record
from api.formats import to_csv, to_frame
from api.parameters import nearest
from domain.errors import UsageError

FORMATS = ("table", "wide", "json", "csv", "parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; `wide` ones are shown by `-o wide` only."""

    title: str
    text: Callable[[Record], str]
    wide: bool = False


def field(title: str, name: str, shown: Callable[[Any], str] = str, *, wide: bool = False) -> Column:
    """A column that shows one field of the row, `-` where it is empty."""

    def text(row: Record) -> str:
        value = row[name]
        return "-" if value is None or value == "" else shown(value)

    return Column(title=title, text=text, wide=wide)


def check_format(name: str) -> str:
    """
    A known format, for a command to check before it works.

    Raises:
        UsageError: names the nearest known one.
    """
    if name not in FORMATS:
        message = f"-o {name}: {nearest(name, FORMATS)}"
        raise UsageError(message)
    return name


def write(document: Record, form: str, columns: Sequence[Column]) -> None:
    """Write a list or a metric's answer."""
    match form:
        case "json":
            typer.echo(json.dumps(document, indent=2))
        case "csv":
            typer.echo(to_csv(document).decode(), nl=False)
        case "parquet":
            _write_parquet(document)
        case _:
            shown = [column for column in columns if form == "wide" or not column.wide]
            typer.echo(table(document["rows"], shown))


def table(rows: Sequence[Record], columns: Sequence[Column]) -> str:
    """Rows under upper-case titles, as kubectl prints them."""
    cells = [[column.title.upper() for column in columns]]
    cells += [[column.text(row) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def remark(text: str) -> None:
    """Something that is not part of the answer."""
    typer.echo(text, err=True)


def _write_parquet(document: Record) -> None:
    if sys.stdout.isatty():
        message = "-o parquet writes bytes: send it to a file, for example > workloads.parquet"
        raise UsageError(message)
    stream = io.BytesIO()
    to_frame(document).write_parquet(stream)
    typer.echo(stream.getvalue(), nl=False)
