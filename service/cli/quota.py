"""`quota`: what is proposed, why, and the patch to apply it with; nothing here writes to a cluster."""

import getpass
import json
from pathlib import Path
from typing import Annotated

import typer

from api.answers import Record
from domain.errors import StoreError, UsageError
from domain.words import count
from service import words
from service.cli import options
from service.cli.options import AsOf, Cluster, Config, DataDir, Given, Output
from service.cli.output import check_format, field, remark, table, write
from service.cli.reader import Reader, open_reader
from service.running import found
from service.settings import Settings

_group = typer.Typer(help="Which quotas should change, and why.", no_args_is_help=True, rich_markup_mode=None)
_ANSWER_SECONDS = 120.0
_OPEN = frozenset({"proposed", "approved"})
ProposalId = Annotated[str, typer.Argument(help="As `gpuledger quota list` shows it.", metavar="ID")]

# The rest of the evidence is of the week; a debt is of an instant.
_AT_WEEKS_END = {"debt_gpu_hours": "gpu-hours owed when the week ended"}

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
        shown = count(len(rows), "proposal")
        remark(f"{shown} as of {document['as_of']}; `gpuledger quota show ID` has the patch")


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
    Make the proposals of a finished week, anew where there are some, also while the store is served.

    They are made by themselves when a week is over, and again when more is known of it, such as GPU metrics
    that came late. Where somebody decided on a proposal, only this command makes the others anew.
    """
    from service.quota_orders import PROPOSE

    asked = {"week": week, "clusters": list(cluster or ())}
    _order(Given(config=config, data_dir=data_dir).settings(), PROPOSE, asked)


@_group.command("reject")
def reject(
    proposal_id: ProposalId,
    *,
    note: Annotated[str, typer.Option("--note", help="Why, for the record.")] = "",
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Reject a proposal, also while the store is served; it is kept, with who rejected it."""
    from service.quota_orders import REJECT

    asked = {"id": proposal_id, "who": getpass.getuser(), "note": note}
    _order(Given(config=config, data_dir=data_dir).settings(), REJECT, asked)


def _order(settings: Settings, order: str, asked: Record) -> None:
    """Let a running serve do it, else do it with the store; raises StoreError without one."""
    from service.orders import give

    if found(settings.serve_file) is not None:
        typer.echo(give(settings.orders_dir, order, json.dumps(asked), seconds=_ANSWER_SECONDS))
        return
    if not settings.store_file.exists():
        message = f"{settings.store_file}: there is no store yet; say with --data-dir where it lies"
        raise StoreError(message)
    from service.clocks import clock_of
    from service.quota_orders import QuotaOrders
    from store.embedded import Store

    store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    try:
        orders = QuotaOrders(
            store=store,
            policy=settings.thresholds(),
            agreement=settings.money.agreement(),
            terms=settings.quota,
            clock=clock_of(settings, store),
        )
        typer.echo(orders.handlers()[order](json.dumps(asked)))
    finally:
        store.close()


def _open_ids(reader: Reader, as_of_ms: int | None) -> list[str]:
    return [row["id"] for row in reader.quota_proposals(as_of_ms)["rows"] if row["state"] in _OPEN]


def _show(proposal: Record) -> None:
    holder = proposal["holder"] or "the cohort"
    typer.echo(f"{proposal['id']}   {proposal['state']}   {proposal['pool']}   {holder}")
    typer.echo(f"{proposal['before_gpus']} -> {proposal['after_gpus']} GPUs ({proposal['kind']})")
    typer.echo(proposal["because"])
    typer.echo(f"\nEVIDENCE of week {proposal['week']}, {_during(proposal)}")
    for name, value in proposal["evidence"].items():
        shown = _AT_WEEKS_END.get(name, name.replace("_", "-"))
        typer.echo(f"  {shown.ljust(16)}   {words.number(value)}")
    for each in proposal["funding"]:
        typer.echo(f"  {count(each['gpus'], 'GPU')} from {each['proposal']}")
    if proposal["used_gpus"] is not None:
        typer.echo(f"\nUSED now   {words.number(proposal['used_gpus'])} GPUs")
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


def _during(proposal: Record) -> str:
    return f"{words.instant(proposal['week_start_at'])} to {words.instant(proposal['week_end_at'])} UTC"


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
