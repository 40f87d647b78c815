"""`import`: history that was recorded elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import StoreError, UsageError
from service.cli.options import Config, DataDir, Given
from service.cli.output import remark
from service.running import found

if TYPE_CHECKING:
    from collector.recording import ImportSummary

_importer = typer.Typer(
    help="Take in history recorded elsewhere.", no_args_is_help=True, rich_markup_mode=None
)


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
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
    (pods.watch.ndjson); either may be compressed with gzip or xz.
    """
    if cluster is not None and len(paths) > 1:
        message = (
            f"--cluster {cluster} with {len(paths)} folders: import one folder at a time, or leave it out"
        )
        raise UsageError(message)
    settings = Given(config=config, data_dir=data_dir).settings()
    running = found(settings.serve_file)
    if running is not None:
        message = f"{settings.store_file} is held by gpuledger serve (pid {running.pid}); stop it to import"
        raise StoreError(message)
    from collector.recording import import_recording
    from service.refresh import Refresher
    from store.embedded import Store

    store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    try:
        refresher = Refresher(store=store, tenancy=settings.tenancy_rules(), policy=settings.thresholds())
        for path in paths:
            name = cluster or path.resolve().name
            with _progress(f"reading {path}") as advance:
                summary = import_recording(path, name, store, advance)
            with _progress("cutting spans and attempts"):
                recut = refresher.refresh()
            _print(name, summary, recut)
    finally:
        store.close()


def _print(cluster: str, summary: "ImportSummary", recut: int) -> None:
    typer.echo(
        f"{cluster}: {summary.lines:,} lines read in {summary.seconds:.1f} s;"
        f" {summary.transitions:,} transitions, {summary.descriptions:,} descriptions and"
        f" {summary.events:,} events new; {recut:,} workloads cut anew"
    )
    for cause, count in sorted(summary.set_aside.items()):
        typer.echo(f"  set aside {count:,}: {cause}")
    for stream, why in sorted(summary.not_read.items()):
        typer.echo(f"  not read {stream}: {why}")


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int], None]]:
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
        yield lambda lines: progress.update(task, lines=f"{lines:,} lines")
