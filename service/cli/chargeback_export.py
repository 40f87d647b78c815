"""`chargeback export`: a month as a file for finance."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated

import typer

from api.answers import Question
from domain.errors import DataError, UsageError
from service.cli import options
from service.cli.options import AsOf, Cluster, Config, DataDir, Given, Model, Queue, Team
from service.cli.output import remark
from service.cli.reader import open_reader

_BINARY = frozenset({"parquet", "xlsx"})
Month = Annotated[
    str,
    typer.Option("--month", help="Year and month in the billing zone, or current.", metavar="YYYY-MM"),
]


def export(  # noqa: PLR0913 (each parameter is an option)
    *,
    month: Month = "current",
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="csv, parquet, xlsx, or focus for FOCUS 1.4.",
            show_default="as the file is named, else csv",
            metavar="FORMAT",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-O", help="The file to write.", show_default="stdout", metavar="FILE"),
    ] = None,
    as_of: AsOf = None,
    team: Team = None,
    queue: Queue = None,
    model: Model = None,
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Write a month, open or closed, with a row per team, project, user, queue, model and day."""
    from api.exports.formats import export_format

    if not month.strip():
        message = f"month {month!r}: expected year and month, for example 2026-10, or current"
        raise UsageError(message)
    chosen = export_format(form or _of_name(output), named="--format")
    if output is None and chosen.name in _BINARY and sys.stdout.isatty():
        message = f"--format {chosen.name} writes bytes: name a file, for example -O 2026-10.{chosen.suffix}"
        raise UsageError(message)
    question = Question(
        as_of_ms=options.instant(as_of),
        filters=options.filters(team=team, queue=queue, gpu_model=model, cluster=cluster),
    )
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        exported = reader.export(month, question, chosen.name)
        size = _to_stdout(exported.pieces) if output is None else _to_file(output, exported.pieces)
    remark(f"{output or 'stdout'}: {exported.name}, {size:,} bytes")


def _of_name(file: Path | None) -> str:
    """The format that a file's name asks for."""
    if file is None:
        return "csv"
    return "focus" if file.name.endswith(".focus.csv") else file.suffix.removeprefix(".") or "csv"


def _to_stdout(pieces: Iterator[bytes]) -> int:
    size = 0
    for piece in pieces:
        typer.echo(piece, nl=False)
        size += len(piece)
    return size


def _to_file(file: Path, pieces: Iterator[bytes]) -> int:
    """Beside it first, so that no half of a month ever bears its name."""
    size = 0
    try:
        with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as beside:
            part = Path(beside.name)
            try:
                for piece in pieces:
                    size += beside.write(piece)
            except BaseException:
                part.unlink()
                raise
        part.chmod(0o644)
        part.replace(file)
    except OSError as cause:
        message = (
            f"{file}: cannot be written ({cause.strerror or cause}); name a file in a folder that exists"
        )
        raise DataError(message) from cause
    return size
