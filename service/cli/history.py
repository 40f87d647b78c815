"""`import`: history that was recorded elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from domain.errors import StoreError, UsageError
from domain.window import SystemClock, format_instant, parse_duration, parse_instant
from domain.words import count
from service.cli import job_imports, state_imports
from service.cli.options import Config, DataDir, Given
from service.cli.output import remark
from service.running import found

if TYPE_CHECKING:
    from collector.recording import ImportSummary
    from service.books import Books
    from service.gpu_metrics import Taken
    from store.embedded import Store

Cluster: TypeAlias = Annotated[
    str, typer.Option("--cluster", help="The cluster whose GPUs they are.", metavar="NAME")
]
Step: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--step",
        help="How far apart the samples are, for example 30s.",
        show_default="as they are; 30s of a server",
        metavar="LENGTH",
    ),
]

_LINES_SHOWN = 10

_importer = typer.Typer(
    help="Take in history recorded elsewhere.", no_args_is_help=True, rich_markup_mode=None
)


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    job_imports.add_to(_importer)
    _importer.command("states")(state_imports.states)
    app.add_typer(_importer, name="import")


@_importer.callback()
def importer() -> None:
    """Take in history recorded elsewhere."""


@_importer.command("k8s")
def k8s(
    paths: Annotated[
        list[Path], typer.Argument(help="Folders with list and watch files.", metavar="PATH...")
    ],
    *,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="The cluster's name.", show_default="the folder's name")
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take in recordings of Kubernetes clusters. Doing it again changes nothing.

    A folder holds, for each kind, the answer of a list (pods.list.json) and the lines of a watch
    (pods.watch.ndjson) with the instants of their receipt (pods.times, epoch seconds); each may be
    compressed with gzip, xz or zstd. A file that is cut off is read as far as it goes.
    """
    if cluster is not None and len(paths) > 1:
        message = (
            f"--cluster {cluster} with {len(paths)} folders: import one folder at a time, or leave it out"
        )
        raise UsageError(message)
    from collector.recording import import_recording
    from service.imported_file import unless_watched

    given = Given(config=config, data_dir=data_dir)
    settings = given.settings()
    names = [cluster or path.resolve().name for path in paths]
    # A recording's positions would be taken for those of the watches.
    unless_watched(names, {one.name for one in settings.clusters})
    cut: list[str] = []
    with books_opened(given) as (store, books):
        for name, path in zip(names, paths, strict=True):
            with _progress(f"reading {path}") as advance:
                summary = import_recording(
                    path, name, store, advance, checkpoint_keys=settings.checkpoints.keys
                )
            with _progress("keeping the books"):
                recut = books.kept()["lives"]
            _print(name, summary, recut)
            cut += [f"{path}: {because}" for because in summary.cut]
    job_imports.fail_if((), cut)


@_importer.command("prometheus")
def prometheus(  # noqa: PLR0913 (options of a command)
    origins: Annotated[
        list[str],
        typer.Argument(help="A Prometheus' address, or files and folders of saved answers.", metavar="URL"),
    ],
    *,
    cluster: Cluster,
    start: Annotated[
        str | None, typer.Option("--start", help="The first instant, RFC 3339.", metavar="INSTANT")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--end", help="The instant to stop before.", show_default="the machine's now", metavar="INSTANT"
        ),
    ] = None,
    step: Step = None,
    match: Annotated[
        str, typer.Option("--match", help='Further label matchers, such as job="dcgm".', metavar="MATCHERS")
    ] = "",
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="A file with the bearer token.", show_default=False)
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take in GPU metrics from a Prometheus, or from saved answers of it. Doing it again changes nothing.

    An address is asked for all instants from --start on, every --step, a piece at a time: after a stop the
    same command goes on, and what is known is not stored again. A folder of saved answers to
    `query_range` may have an index.json that tells the query, start and step of each file.
    """
    from service.gpu_metrics import keep_parts, noting_silences, prometheus_parts

    parts = prometheus_parts(
        origins, start=start, end=end, step=step, match=match, token_file=token_file, clock=SystemClock()
    )
    silences: list[tuple[int, int]] = []
    if start is not None:  # a server; files of saved answers come in no order
        parts = noting_silences(parts, silences, from_ms=parse_instant(start))
    with books_opened(Given(config=config, data_dir=data_dir)) as (store, books):
        with _progress("reading GPU metrics", "samples") as advance:
            now_ms = SystemClock().now_ms()
            taken = keep_parts(store, cluster, parts, advance, now_ms=now_ms, of_files=start is None)
        with _progress("keeping the books"):
            anew = books.kept()["activity"]
        _print_taken(cluster, taken, anew)
    _print_some([f"{why}; it may lack samples: give the same command again" for why in taken.lacking])
    _print_some([
        f"no device was told of from {format_instant(from_ms)} to {format_instant(to_ms)}"
        for from_ms, to_ms in silences
    ])  # fmt: skip


@_importer.command("dcgm")
def dcgm(
    files: Annotated[
        list[Path], typer.Argument(help="Answers of dcgm-exporter, or folders of them.", metavar="FILE...")
    ],
    *,
    cluster: Cluster,
    step: Step = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take in what dcgm-exporters answered. Doing it again changes nothing.

    A file holds one answer, read when the file was written, or recorded scrapes: before each answer a
    line #scrape {"t": SECONDS, "status": 200, "bytes": N}. It may be compressed with gzip, xz or zstd.
    """
    from service.gpu_metrics import keep_scrapes, scrape_files

    with books_opened(Given(config=config, data_dir=data_dir)) as (store, books):
        with _progress("reading GPU metrics", "samples") as advance:
            scraped, now_ms = scrape_files(files, step), SystemClock().now_ms()
            taken = keep_scrapes(store, cluster, scraped, advance, now_ms=now_ms)
        with _progress("keeping the books"):
            anew = books.kept()["activity"]
        _print_taken(cluster, taken, anew)
    job_imports.fail_if((), taken.cut)


@_importer.command("parquet")
def parquet(
    files: Annotated[list[Path], typer.Argument(help="Parquet files of GPU samples.", metavar="FILE...")],
    *,
    cluster: Cluster,
    step: Step = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take in GPU samples kept as Parquet. Doing it again changes nothing.

    Columns: at_ms, node, uuid, instance, profile, gpu_model, namespace, pod, activity (0 to 1),
    fb_used_mib, fb_total_mib and, for shared GPUs, copies. One row is a device at an instant, with the
    pod on it.
    """
    from collector.dcgm.parquet import read_parquet
    from service.gpu_metrics import keep_parts

    step_ms = None if step is None else parse_duration(step) // timedelta(milliseconds=1)
    with books_opened(Given(config=config, data_dir=data_dir)) as (store, books):
        for file in files:
            with _progress("reading GPU metrics", "samples") as advance:
                parts = read_parquet(file, source=f"parquet/{file.stem}", step_ms=step_ms)
                now_ms = SystemClock().now_ms()
                taken = keep_parts(store, cluster, parts, advance, now_ms=now_ms, of_files=True)
            with _progress("keeping the books"):
                anew = books.refresh()
            _print_taken(cluster, taken, anew)


@contextmanager
def books_opened(given: Given) -> "Iterator[tuple[Store, Books]]":
    """The store of the settings, opened for this command, with its books."""
    settings = given.settings()
    running = found(settings.serve_file)
    if running is not None:
        message = f"{settings.store_file} is held by gpuledger serve (pid {running.pid}); stop it to import"
        raise StoreError(message)
    from service.books import books_of
    from service.clocks import clock_of
    from service.wait_reasons import PAST_LOOKS
    from store.embedded import Store

    store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    try:
        books = books_of(
            store,
            tenancy=settings.tenancy_rules(),
            policy=settings.thresholds(),
            clock=clock_of(settings, store),
            agreement=settings.money.agreement(),
            quotas=settings.quota,
            past_looks=PAST_LOOKS,
        )
        yield store, books
    finally:
        store.close()


def _print_taken(cluster: str, taken: "Taken", anew: int) -> None:
    failed = f"; {count(taken.failed, 'scrape')} had failed" if taken.failed else ""
    typer.echo(
        f"{cluster}: {count(taken.read, 'GPU sample')} read, {taken.new:,} of them new{failed};"
        f" {count(anew, 'workload')} with new activity"
    )
    for cause, times in sorted(taken.set_aside.items()):
        typer.echo(f"  set aside {times:,}: {cause}")


def _print_some(lines: list[str]) -> None:
    for line in lines[:_LINES_SHOWN]:
        typer.echo(f"  {line}")
    if len(lines) > _LINES_SHOWN:
        typer.echo(f"  and so {len(lines) - _LINES_SHOWN:,} times more")


def _print(cluster: str, summary: "ImportSummary", recut: int) -> None:
    typer.echo(
        f"{cluster}: {count(summary.lines, 'line')} read in {summary.seconds:.1f} s;"
        f" {count(summary.transitions, 'transition')}, {count(summary.descriptions, 'description')} and"
        f" {count(summary.events, 'event')} new; {count(recut, 'workload')} cut anew"
    )
    for cause, times in sorted(summary.set_aside.items()):
        typer.echo(f"  set aside {times:,}: {cause}")
    for stream, why in sorted(summary.not_read.items()):
        typer.echo(f"  not read {stream}: {why}")


@contextmanager
def _progress(what: str, counted: str = "lines") -> Iterator[Callable[[int], None]]:
    """Shows a count that grows, on a terminal only."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        remark(f"{what} ...")
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[lines]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=None, lines="")
        yield lambda lines: progress.update(task, lines=f"{lines:,} {counted}")
