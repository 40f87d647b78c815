"""`import sacct`, `swf` and `table`: jobs from tables of other schedulers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from domain.errors import DataError, UsageError
from domain.window import SystemClock, parse_instant
from domain.words import count
from service.cli.options import Config, DataDir, Given
from service.cli.output import field, remark, table

if TYPE_CHECKING:
    from collector.imports.row import Read
    from service.imported_file import Source
    from service.job_imports import Summary
    from service.reconciliation import Line, Reconciliation

# Lines of the reconciliation that are shown; those that do not close always are.
_LINES_SHOWN = 40

Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="The cluster's name.", show_default="the file's own, else its name", metavar="NAME"
    ),
]
Zone: TypeAlias = Annotated[
    str,
    typer.Option("--zone", help="The time zone of stamps that do not tell theirs.", metavar="ZONE"),
]


def add_to(importer: typer.Typer) -> None:
    """Add the commands to the group `import`."""
    importer.command("sacct")(sacct)
    importer.command("swf")(swf)
    importer.command("table")(table_of_jobs)


def sacct(
    files: Annotated[list[Path], typer.Argument(help="What sacct printed.", metavar="FILE...")],
    *,
    cluster: Cluster = None,
    zone: Zone = "UTC",
    fields: Annotated[
        str | None,
        typer.Option(
            "--fields", help="The columns of a text without names (--noheader).", metavar="NAME,NAME..."
        ),
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take in Slurm's accounts: the text of sacct --parsable2, or its JSON. Doing it again changes nothing.

    Export with --duplicates, so that stays before a requeue are told; steps are left out. Stamps are in the
    cluster's own zone: say which with --zone, or export with TZ=UTC. A later export of the same jobs brings
    them up to date. A file may be compressed with gzip, xz or zstd.
    """
    from collector.imports.stamps import zone_of
    from service.job_imports import sacct_source

    read_in = zone_of(zone)
    _import(
        files,
        lambda path: sacct_source(path, zone=read_in, fields=fields),
        cluster=cluster,
        given=Given(config=config, data_dir=data_dir),
        note=f"stamps without a zone are read as {zone}",
    )


def swf(  # noqa: PLR0913 (options of a command)
    files: Annotated[
        list[Path], typer.Argument(help="Logs in the Standard Workload Format.", metavar="FILE...")
    ],
    *,
    cluster: Cluster = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            help="The instant of second 0, RFC 3339.",
            show_default="the log's UnixStartTime",
            metavar="INSTANT",
        ),
    ] = None,
    gpus_per_processor: Annotated[
        float, typer.Option("--gpus-per-processor", help="How many GPUs a processor stands for.")
    ] = 1.0,
    starts_when_submitted: Annotated[
        bool,
        typer.Option(
            "--starts-when-submitted", help="Jobs whose wait is not told started when they were submitted."
        ),
    ] = False,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take in a log of the Parallel Workloads Archive. Doing it again changes nothing.

    The format knows processors only: each stands for a GPU unless --gpus-per-processor says otherwise. A job
    whose wait is not told (-1) is set aside, unless the log's submissions are known to be starts.
    """
    from collector.imports.swf import Log
    from service.job_imports import swf_source

    if not 0 <= gpus_per_processor <= 1000:
        message = f"--gpus-per-processor {gpus_per_processor:g}: expected 0 to 1000"
        raise UsageError(message)
    started_ms = None if start is None else parse_instant(start)
    _import(
        files,
        lambda path: swf_source(
            path,
            Log(
                started_ms=started_ms,
                gpus_per_processor=gpus_per_processor,
                starts_when_submitted=starts_when_submitted,
            ),
        ),
        cluster=cluster,
        given=Given(config=config, data_dir=data_dir),
        note=f"a processor stands for {gpus_per_processor:g} GPUs",
    )


def table_of_jobs(
    files: Annotated[list[Path], typer.Argument(help="CSV or Parquet files.", metavar="FILE...")],
    *,
    mapping: Annotated[
        Path, typer.Option("--mapping", help="Which column is what, in YAML.", metavar="MAP.yaml")
    ],
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take in a table with a row per job. Doing it again changes nothing.

    The mapping names the table's columns; the page of imports has an example. A CSV may be compressed with
    gzip, xz or zstd.
    """
    from service.job_imports import mapping_file, table_source

    read = mapping_file(mapping)
    _import(
        files,
        lambda path: table_source(path, read),
        cluster=cluster,
        given=Given(config=config, data_dir=data_dir),
        note=f"stamps without a zone are read as {read.time.zone}",
    )


def _import(
    files: Sequence[Path],
    opened: "Callable[[Path], Source[Read]]",
    *,
    cluster: str | None,
    given: Given,
    note: str,
) -> None:
    from service.cli.history import books_opened
    from service.imported_file import unless_watched
    from service.job_imports import import_jobs

    open_totals: list[str] = []
    cut: list[str] = []
    now_ms = SystemClock().now_ms()
    watched = {one.name for one in given.settings().clusters}
    unless_watched([] if cluster is None else [cluster], watched)
    with books_opened(given) as (store, books):
        for path in files:
            source = opened(path)
            with bar(f"reading {path.name}", source.size) as advance:
                summary = import_jobs(
                    source,
                    store,
                    cluster=cluster,
                    now_ms=now_ms,
                    refresh=books.lives_of,
                    progress=advance,
                    watched=watched,
                )
            _print(summary, note)
            open_totals += [] if summary.closes else [path.name]
            cut += [summary.cut] if summary.is_cut else []
        remark("keeping the books ...")
        books.refresh()
    fail_if(open_totals, cut)


def fail_if(open_totals: Sequence[str], cut: Sequence[str]) -> None:
    """
    End the command where a file was not taken in as it is.

    Args:
        open_totals: names of files.
        cut: sentences that say which file ends where before its end.

    Raises:
        DataError: the books of one of the files differ, or one of them is cut off.
    """
    told = []
    if open_totals:
        told.append(f"{', '.join(open_totals)}: the books do not agree with the file's own totals, see above")
    if cut:
        told.append(
            f"{'; '.join(cut)}. All that comes before was taken in: copy or export what was cut again, and "
            "import it anew, for what is known is not told twice"
        )
    if told:
        raise DataError("\n".join(told))


def _print(summary: "Summary", note: str) -> None:
    typer.echo(
        f"{summary.name}: {count(summary.lines, 'record')}; {summary.job_lines:,} tell of"
        f" {count(summary.jobs, 'stay')} of jobs, {summary.part_lines:,} are parts of them,"
        f" {summary.aside.total():,} were set aside; {note}"
    )
    for cause, times in sorted(summary.aside.items()):
        typer.echo(f"  set aside {times:,}: {cause}")
    if summary.may_be_later:
        typer.echo(
            f"  {summary.may_be_later:,} stays have stamps in an hour that the clock shows twice, and were"
            " read as of the first: they may be an hour later; to know, export stamps of UTC (sacct: TZ=UTC)"
            " and say so with --zone UTC, or with time.zone of the mapping"
        )
    for name, one in summary.clusters.items():
        typer.echo(
            f"{name}: {count(one.new, 'stay')} new, {one.updated:,} brought up to date, {one.known:,} known;"
            f" {count(one.facts, 'fact')}"
        )
        if one.closing is not None:
            _print_closing(one.closing, name, is_cut=summary.is_cut)


_COLUMNS = (
    field("team", "team"),
    field("outcome", "outcome"),
    field("stays: file", "file_stays", "{:,}".format),
    field("books", "books_stays", "{:,}".format),
    field("gpu-hours: file", "file_hours", "{:,.4f}".format),
    field("books", "books_hours", "{:,.4f}".format),
)


def _print_closing(closing: "Reconciliation", cluster: str, *, is_cut: bool) -> None:
    shown = sorted(closing.lines, key=lambda line: (_agrees(line), -line.file_hours))[:_LINES_SHOWN]
    counted = ("file_stays", "books_stays", "file_hours", "books_hours")
    total = {name: sum(getattr(line, name) for line in closing.lines) for name in counted}
    rows = [
        {"team": line.team, "outcome": line.outcome} | {name: getattr(line, name) for name in counted}
        for line in shown
    ]
    typer.echo(table([*rows, {"team": "all", "outcome": "", **total}], _COLUMNS))
    if len(closing.lines) > len(shown):
        typer.echo(f"  {len(closing.lines) - len(shown):,} more lines agree")
    if closing.suspended_hours:
        typer.echo(
            f"  {closing.suspended_hours:,.4f} GPU-hours between start and end are no run time by the file's"
            " own column, for example of suspended jobs; the books count them as held"
        )
    if closing.unknown:
        typer.echo(f"  {closing.unknown:,} stays have shares of GPUs of unknown size: they count no hours")
    if closing.skewed:
        typer.echo(
            f"  {closing.skewed:,} stays have stamps that contradict each other, and stay out of figures"
        )
    # Books and a file that both tell nothing agree, and that would sound as if something had been checked.
    nothing = "no stay of a job was taken in, so there is nothing that the books could agree with"
    told = verdict(closes=closing.closes, is_cut=is_cut) if closing.lines else nothing
    typer.echo(f"  {cluster}: {told}")


def verdict(*, closes: bool, is_cut: bool) -> str:
    """Whether the books agree with a file, or with what could be read of it."""
    file = "what could be read of the file" if is_cut else "the file"
    return f"the books {'agree' if closes else 'DO NOT agree'} with {file}"


def _agrees(line: "Line") -> bool:
    return line.file_stays == line.books_stays and abs(line.file_hours - line.books_hours) < 1e-6


@contextmanager
def bar(what: str, size: int) -> Iterator[Callable[[int, int], None]]:
    """A bar over the bytes of the file, with the records so far; on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        remark(f"{what} ...")
        yield lambda _records, _position: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[records]}"))
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as progress:
        task = progress.add_task(what, total=size or None, records="")
        yield lambda records, position: progress.update(
            task, completed=position, records=f"{records:,} records"
        )
