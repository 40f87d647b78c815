"""`quota`: what is proposed, why, and the patch to apply it with; nothing here writes to a cluster."""

import getpass
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from api.answers import Record
from domain.errors import StoreError, UsageError
from service import words
from service.cli import options
from service.cli.options import AsOf, Cluster, Config, DataDir, Given, Output
from service.cli.output import check_format, field, remark, table, write
from service.cli.reader import Reader, open_reader
from service.running import found
from service.settings import Settings
from store.embedded import Store

_group = typer.Typer(help="Which quotas should change, and why.", no_args_is_help=True, rich_markup_mode=None)
_OPEN = frozenset({"proposed", "approved"})
ProposalId = Annotated[str, typer.Argument(help="As `gpuledger quota list` shows it.", metavar="ID")]

_COLUMNS = (
    field("id", "id"),
    field("state", "state"),
    field("pool", "pool"),
    field("holder", "holder"),
    field("what", "kind"),
    field("from", "before_gpus"),
    field("to", "after_gpus"),
    field("used", "used_gpus", words.number),
    field("week", "week"),
    field("expires", "expires_at", words.instant),
    field("made", "made_at", words.instant, wide=True),
    field("live", "live_gpus", wide=True),
    field("cluster", "cluster", wide=True),
    field("because", "because", wide=True),
)
_EXPOSED = (
    field("namespace", "namespace"),
    field("name", "name"),
    field("team", "team"),
    field("gpus", "gpus"),
    field("priority", "priority"),
    field("uid", "uid"),
)
_AUDIT = (
    field("at", "at", words.instant),
    field("from", "from_state"),
    field("to", "to_state"),
    field("who", "who"),
    field("note", "note"),
)


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(_group, name="quota")


@_group.callback()
def quota() -> None:
    """Which quotas should change, and why."""


@_group.command("list")
def list_proposals(
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Those that were decided on, or are too old, as well.")
    ] = False,
    output: Output = "table",
    as_of: AsOf = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """List the proposals that wait for a decision."""
    check_format(output)
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        document = reader.quota_proposals(options.instant(as_of))
    rows = [row for row in document["rows"] if every or row["state"] in _OPEN]
    if output in {"csv", "parquet"}:
        # A table never holds a table: what is nested stands in the JSON.
        rows = [{name: value for name, value in row.items() if not isinstance(value, dict)} for row in rows]
    write(document | {"rows": rows, "total": len(rows)}, output, _COLUMNS)
    if output in {"table", "wide"}:
        remark(f"{len(rows)} proposals as of {document['as_of']}; `gpuledger quota show ID` has the patch")


@_group.command("show")
def show(
    proposal_id: ProposalId,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.", metavar="FORMAT")] = "table",
    as_of: AsOf = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Show a proposal: its evidence, whom it exposes, its patch and its history."""
    if output not in {"table", "json"}:
        message = f"-o {output}: expected table or json"
        raise UsageError(message)
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        proposal = reader.quota_proposal(proposal_id, options.instant(as_of))
    if output == "json":
        typer.echo(json.dumps(proposal, indent=2))
        return
    _show(proposal)


@_group.command("export")
def export(
    proposal_id: Annotated[
        str | None, typer.Argument(help="As `gpuledger quota list` shows it.", metavar="[ID]")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All that wait for a decision.")] = False,
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Where the files are written.", metavar="DIR")
    ] = Path(),
    as_of: AsOf = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Write JSON Patch files: ID.patch.json, and ID.inverse.json that undoes it.

    A patch tests the version and the value that were read; where either has changed since, it is refused.
    """
    if (proposal_id is None) is not every:
        message = "quota export: name one proposal, or give --all"
        raise UsageError(message)
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        names = [proposal_id] if proposal_id else _open_ids(reader, options.instant(as_of))
        proposals = [reader.quota_proposal(name, options.instant(as_of)) for name in names]
    folder.mkdir(parents=True, exist_ok=True)
    for proposal in proposals:
        _export(proposal, folder)
    if not proposals:
        remark("no proposal waits for a decision")


@_group.command("propose")
def propose(
    *,
    week: Annotated[
        str | None,
        typer.Option(
            "--week",
            help="A finished ISO week in the billing zone, for example 2026-W48.",
            show_default="the last one",
            metavar="YYYY-Www",
        ),
    ] = None,
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Make the proposals of a finished week, anew where there are some; a running serve makes them by itself.

    Do it again after importing GPU metrics of that week: without them nobody's quota moves.
    """
    from domain import calendar
    from service.clocks import clock_of
    from service.quota import Proposer, finished_week

    settings = Given(config=config, data_dir=data_dir).settings()
    with _own_store(settings) as store:
        agreement = settings.money.agreement()
        as_of_ms = clock_of(settings, store).now_ms()
        period = calendar.week(week, agreement.zone) if week else finished_week(as_of_ms, agreement)
        proposer = Proposer(store, settings.thresholds(), agreement, settings.quota)
        for name in cluster or store.clusters():
            made = proposer.propose(name, period, as_of_ms, again=True)
            typer.echo(f"{name}, week {period.label}: {len(made)} proposals {' '.join(made)}".rstrip())


@_group.command("reject")
def reject(
    proposal_id: ProposalId,
    *,
    note: Annotated[str, typer.Option("--note", help="Why, for the record.")] = "",
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Reject a proposal; it is kept, with who rejected it."""
    from service import quota as proposals
    from service.clocks import clock_of

    settings = Given(config=config, data_dir=data_dir).settings()
    with _own_store(settings) as store:
        at_ms = clock_of(settings, store).now_ms()
        proposals.reject(store, proposal_id, who=getpass.getuser(), note=note, at_ms=at_ms)
    typer.echo(f"{proposal_id} is rejected")


@contextmanager
def _own_store(settings: Settings) -> Iterator[Store]:
    """The store, for a command that writes; raises StoreError while serve holds it, or without one."""
    running = found(settings.serve_file)
    if running is not None:
        message = (
            f"{settings.store_file} is held by gpuledger serve (pid {running.pid}), which makes proposals by"
            " itself; stop it to write"
        )
        raise StoreError(message)
    if not settings.store_file.exists():
        message = f"{settings.store_file}: there is no store yet; say with --data-dir where it lies"
        raise StoreError(message)
    store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    try:
        yield store
    finally:
        store.close()


def _open_ids(reader: Reader, as_of_ms: int | None) -> list[str]:
    return [row["id"] for row in reader.quota_proposals(as_of_ms)["rows"] if row["state"] in _OPEN]


def _show(proposal: Record) -> None:
    holder = proposal["holder"] or "the cohort"
    typer.echo(f"{proposal['id']}   {proposal['state']}   {proposal['pool']}   {holder}")
    typer.echo(f"{proposal['before_gpus']} -> {proposal['after_gpus']} GPU ({proposal['kind']})")
    typer.echo(proposal["because"])
    typer.echo("\nEVIDENCE of week " + proposal["week"])
    for name, value in proposal["evidence"].items():
        typer.echo(f"  {name.replace('_', '-').ljust(16)}   {words.number(value)}")
    for each in proposal["funding"]:
        typer.echo(f"  {each['gpus']} GPU come from {each['proposal']}")
    if proposal["used_gpus"] is not None:
        typer.echo(f"\nUSED now   {words.number(proposal['used_gpus'])} GPU")
    if proposal["waits_until_free"]:
        typer.echo("More is used than this leaves: it waits until that is over.")
    if proposal["exposed"]:
        typer.echo("\nEXPOSED to reclaim\n" + table(proposal["exposed"], _EXPOSED))
    if proposal["patch"] is None:
        typer.echo(f"\nNO PATCH   {proposal['no_patch_because']}")
    else:
        typer.echo(f"\nPATCH   {proposal['command']}\n{_json(proposal['patch'])}")
        typer.echo(f"\nINVERSE\n{_json(proposal['inverse'])}")
    typer.echo("\n" + table(proposal["audit"], _AUDIT))


def _export(proposal: Record, folder: Path) -> None:
    if proposal["patch"] is None:
        remark(f"{proposal['id']}: no patch; {proposal['no_patch_because']}")
        return
    for kind in ("patch", "inverse"):
        path = folder / f"{proposal['id']}.{kind}.json"
        path.write_text(_json(proposal[kind]) + "\n", encoding="utf-8")
        typer.echo(proposal["command"].replace("FILE", str(path)))


def _json(patch: Record) -> str:
    return json.dumps(patch, indent=2)
