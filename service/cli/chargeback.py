"""`chargeback`: who pays what for which GPU-time."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import typer

from analytics.chargeback.quota_lines import NOTE_COSTS, NOTES
from analytics.chargeback.statement import COSTS, DIMENSIONS
from analytics.wastage.causes import Cause
from api.answers import Question, Record
from api.parameters import nearest
from domain.errors import UsageError
from domain.observed import coverage_words
from domain.words import count
from service import words
from service.cli import options
from service.cli.chargeback_close import close
from service.cli.chargeback_export import export
from service.cli.options import AsOf, Cluster, Config, DataDir, Given, Model, Queue, Team
from service.cli.output import FORMATS, Column, remark, table, write
from service.cli.reader import open_reader

_group = typer.Typer(help="Who pays what for which GPU-time.", no_args_is_help=True, rich_markup_mode=None)
_MARKDOWN = "markdown"


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(_group, name="chargeback")
    _group.command("export")(export)
    _group.command("close")(close)


@_group.callback()
def chargeback() -> None:
    """Who pays what for which GPU-time."""


@_group.command("show")
def show(  # noqa: PLR0913 (each parameter is an option)
    which: Annotated[
        str | None,
        typer.Argument(
            help="Year and month in the billing zone, or current.",
            metavar="[YYYY-MM]",
            show_default="current",
        ),
    ] = None,
    *,
    month: Annotated[
        str | None, typer.Option("--month", help="The same.", show_default="current", metavar="YYYY-MM")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            help=f'What lines are kept apart by, with commas, of {", ".join(DIMENSIONS)}; "" for one.',
            metavar="DIMENSIONS",
        ),
    ] = "team",
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="table, wide, json, csv, parquet or markdown.", metavar="FORMAT"),
    ] = "table",
    as_of: AsOf = None,
    team: Team = None,
    queue: Queue = None,
    model: Model = None,
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Show the statement of a month, or of its days until now."""
    if which is not None and month is not None:
        message = f"{which} --month {month}: expected one month; leave one of them out"
        raise UsageError(message)
    label = "current" if which is None and month is None else which or month or ""
    if not label.strip():
        message = f"month {label!r}: expected year and month, for example 2026-10, or current"
        raise UsageError(message)
    if output not in (*FORMATS, _MARKDOWN):
        message = f"-o {output}: {nearest(output, (*FORMATS, _MARKDOWN))}"
        raise UsageError(message)
    question = Question(
        as_of_ms=options.instant(as_of),
        by=options.labels(by),
        filters=options.filters(team=team, queue=queue, gpu_model=model, cluster=cluster),
    )
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        document = reader.chargeback(label, question)
    dimensions = question.by or ()
    match output:
        case "json":
            typer.echo(json.dumps(document, indent=2, default=str))
        case "csv" | "parquet":
            write(document | {"rows": [_with_decimals(row) for row in document["rows"]]}, output, ())
        case _ if not document["rows"]:
            remark(document["nothing_because"])
        case _:
            columns = _columns(dimensions, document)
            shown = [column for column in columns if output == "wide" or not column.wide]
            if output != _MARKDOWN:
                remark(_state(document))
            rows = [*document["rows"], dict.fromkeys(dimensions[:1], "total") | document["total"]]
            typer.echo(_markdown(rows, shown) if output == _MARKDOWN else table(rows, shown))
            _remark_on(document)


def _with_decimals(row: Record) -> Record:
    """Costs come over HTTP as texts; a table's column of amounts is of numbers."""
    return row | {name: None if row[name] is None else Decimal(row[name]) for name in (*COSTS, *NOTE_COSTS)}


def _columns(dimensions: tuple[str, ...], document: Record) -> list[Column]:
    def of(name: str, text: Callable[[Any], str]) -> Callable[[Record], str]:
        return lambda row: text(row.get(name))

    def at_least(name: str) -> Callable[[Record], str]:
        def text(row: Record) -> str:
            return words.at_least(row[name], words.number(row[name]), bound=row["causes_lower_bound"])

        return text

    money = document["currency"] or ""
    adjusted = document["total"]["loss_adjustment_gpu_hours"]
    lends = document["total"]["lent_gpu_hours"] is not None
    centres = [Column(title="cost-centre", text=of("cost_centre", _text))]
    return [
        *(Column(title=name.replace("_", "-"), text=of(name, _text)) for name in dimensions),
        *(centres if any("cost_centre" in row for row in document["rows"]) else []),
        Column(title="gpu-h", text=of("gpu_hours", words.number)),
        Column(title="held-gpu-h", text=of("held_gpu_hours", words.number)),
        Column(title="useful-gpu-h", text=at_least(f"{Cause.USEFUL}_gpu_hours")),
        Column(title="not-useful-gpu-h", text=at_least("not_useful_gpu_hours")),
        *(
            Column(
                title=f"{cause}-gpu-h".replace("_", "-"),
                text=of(f"{cause}_gpu_hours", words.number),
                wide=True,
            )
            for cause in Cause
            if cause is not Cause.USEFUL
        ),
        *(
            [Column(title="adjusted-gpu-h", text=of("loss_adjustment_gpu_hours", words.number))]
            if adjusted
            else []
        ),
        Column(title="unattributed-gpu-h", text=of("unattributed_gpu_hours", words.number), wide=True),
        *(
            Column(
                title=f"{name.replace('_', '-')} {money}".rstrip(),
                text=of(name, _text),
                wide=name == "contracted_cost" or not money,
            )
            for name in COSTS
        ),
        *(
            Column(
                title=f"{name}-gpu-h".replace("_", "-"),
                text=of(f"{name}_gpu_hours", words.number),
                wide=not lends,
            )
            for name in NOTES
        ),
        *(
            Column(title=f"{name.replace('_', '-')} {money}".rstrip(), text=of(name, _text), wide=True)
            for name in NOTE_COSTS
        ),
    ]


def _text(value: object) -> str:
    return "-" if value is None or value == "" else str(value)


def _markdown(rows: list[Record], columns: list[Column]) -> str:
    lines = [[column.title for column in columns], ["---"] * len(columns)]
    lines += [[column.text(row).replace("|", "\\|") for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _state(document: Record) -> str:
    """Which month it is, and whether it is open or closed, when, by whom, with which fingerprint."""
    month, closed = document["month"], document["closed"]
    if closed is None:
        return f"{month}: open{'' if document['over'] else ', and still running'}"
    because = f", in spite of its checks: {closed['reason']}" if closed["reason"] else ""
    return (
        f"{month}: closed {closed['closed_at']} by {closed['closed_by']}{because}, sha256 {closed['sha256']}"
    )


def _remark_on(document: Record) -> None:
    """Over which days, whether the books close, what was corrected, and what is not known."""
    whole = "the whole month" if document["complete"] else "over"
    state = whole if document["over"] else f"its days until {document['as_of']}"
    remark(f"{document['month']} in {document['zone']}, {state}, {document['billing']}")
    observed = coverage_words(document["coverage"], windowed=True)
    if observed:
        remark(f"not complete: {observed}")
    for hint in document["hints"]:
        remark(f"note: {hint}")
    books = document["books"]
    if books is not None:
        parts = {name: words.number(books[f"{name}_gpu_hours"]) for name in ("capacity", "held", "idle")}
        more = {name: words.number(books[f"{name}_gpu_hours"]) for name in ("unavailable", "overlap")}
        remark(
            f"GPU-hours: capacity {parts['capacity']} = held {parts['held']} + idle {parts['idle']}"
            f" + unavailable {more['unavailable']} - overlap {more['overlap']}"
        )
    if document["currency"]:
        remark(_invoice(document))
    for each in document["corrections"]:
        money = f"{each['effective_cost']} {document['currency']}, " if document["currency"] else ""
        learnt = words.number(each["correction_gpu_hours"])
        remark(f"of it corrections of {each['of_month']}, which is closed: {money}{learnt} GPU-hours")
    for check in document["checks"]:
        if not check["holds"]:
            remark(f"does not hold: {check['words']}")
    _remark_on_hours(document["total"], document["from_unassigned_gpu_hours"])
    missing = {
        "money": "money",
        "useful and not useful": "causes",
        "lent, borrowed and unused commitment": "commitment",
    }
    for what, name in missing.items():
        if document[f"no_{name}_because"]:
            remark(f"no {what}: {document[f'no_{name}_because']}")
    if document["unknown"]:
        unknown = count(len(document["unknown"]), "stretch of a node is", "stretches of nodes are")
        remark(f"{unknown} not known: figures are lower bounds there")


def _invoice(document: Record) -> str:
    """What the lines come to, by kind: they sum to the total to the cent."""
    parts = [
        f"{row['kind'].replace('_', ' ')} {row['effective_cost']}"
        for row in document["by_kind"]
        if Decimal(row["effective_cost"])
    ]
    return (
        f"effective cost, {document['currency']}: {' + '.join(parts) or 0} = {_effective(document['total'])}"
    )


def _effective(total: Record) -> str:
    return f"{total['effective_cost']}; billed {total['billed_cost']}"


def _remark_on_hours(total: Record, from_nobody: float | None) -> None:
    """What was corrected of earlier days, and whether what is lent is what is borrowed."""
    adjusted = total["loss_adjustment_gpu_hours"]
    if adjusted:
        remark(
            f"loss adjustment: {words.number(adjusted)} GPU-hours that earlier days booked as useful turned"
            " out not to be; they are taken off useful here, at no cost: held time is paid once"
        )
    if from_nobody is not None:
        remark(
            f"GPU-hours of quota: lent {words.number(total['lent_gpu_hours'])} = borrowed"
            f" {words.number(total['borrowed_gpu_hours'])} - {words.number(from_nobody)} from no holder's"
            " quota"
        )
