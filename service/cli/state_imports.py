"""`import states`: what a site counted in its queues."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.window import SystemClock, format_instant
from domain.words import count
from service.cli.job_imports import Cluster, bar, fail_if, verdict
from service.cli.options import Config, DataDir, Given
from service.cli.output import field, table

if TYPE_CHECKING:
    from service.state_imports import StateClosing, StateSummary

_COLUMNS = (
    field("queue", "queue"),
    field("rows: file", "file_rows", "{:,}".format),
    field("books", "books_rows", "{:,}".format),
    field("waiting job-hours: file", "file_waiting_hours", "{:,.4f}".format),
    field("books", "books_waiting_hours", "{:,.4f}".format),
    field("held gpu-hours: file", "file_held_hours", "{:,.4f}".format),
    field("books", "books_held_hours", "{:,.4f}".format),
    field("of gpu-hours", "total_hours", "{:,.4f}".format),
)


def states(
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
    Take in a table of counts per queue and instant. Doing it again changes nothing.

    A row says how many jobs ran and waited in a queue, and how many GPUs were held, idle and waited for,
    at an instant and for a step from it on. No workloads are made of it: ask the metrics queue_state_*.
    """
    from service.cli.history import books_opened
    from service.state_imports import import_states, state_mapping_file, state_source

    read = state_mapping_file(mapping)
    open_totals: list[str] = []
    cut: list[str] = []
    with books_opened(Given(config=config, data_dir=data_dir)) as (store, _):
        for path in files:
            source = state_source(path, read)
            with bar(f"reading {path.name}", source.size) as advance:
                summary = import_states(
                    source, store, read, cluster=cluster, now_ms=SystemClock().now_ms(), progress=advance
                )
            _print(
                summary, f"a row stands for {read.step}; stamps without a zone are read as {read.time.zone}"
            )
            open_totals += [] if summary.closes else [path.name]
            cut += [summary.cut] if summary.is_cut else []
    fail_if(open_totals, cut)


def _print(summary: "StateSummary", note: str) -> None:
    typer.echo(
        f"{summary.name}: {count(summary.lines, 'row')}; {summary.aside.total():,} were set aside; {note}"
    )
    for cause, times in sorted(summary.aside.items()):
        typer.echo(f"  set aside {times:,}: {cause}")
    for name, one in summary.clusters.items():
        between = (
            f" between {format_instant(one.first_ms)} and {format_instant(one.last_ms)}"
            if one.first_ms is not None and one.last_ms is not None
            else ""
        )
        stretches = count(one.stretches, "stretch", "stretches")
        typer.echo(f"{name}: {count(one.new, 'row')} new, {one.known:,} known{between}; {stretches}")
        if one.closing is not None:
            _print_closing(one.closing, name, is_cut=summary.is_cut)


def _print_closing(closing: "StateClosing", cluster: str, *, is_cut: bool) -> None:
    rows = [asdict(line) for line in closing.lines]
    summed: dict[str, Any] = {"queue": "all"}
    for name in (given.name for given in fields(closing.lines[0]) if given.name != "queue") if rows else ():
        known = [row[name] for row in rows if row[name] is not None]
        summed[name] = sum(known) if known else None
    typer.echo(table([*rows, *([summed] if rows else [])], _COLUMNS))
    differing = "" if closing.closes else f": {closing.differing:,} rows differ"
    typer.echo(f"  {cluster}: {verdict(closes=closing.closes, is_cut=is_cut)}{differing}")
