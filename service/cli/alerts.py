"""`alerts`: what fires, what is pending, and what fired, with what that rests on."""

from typing import Annotated

import typer

from api.answers import Record, ReportQuestion
from service import words
from service.cli import options
from service.cli.options import AsOf, Class, Cluster, Config, DataDir, Given, Model, Output, Queue, Team
from service.cli.output import Column, check_format, field, remark, write
from service.cli.reader import open_reader


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("alerts")(alerts)


def _amount(name: str) -> Column:
    def text(row: Record) -> str:
        return "-" if row[name] is None else words.amount(row[name], row["unit"])

    return Column(title=name.replace("_", "-"), text=text, wide=name == "worst_value")


def _value(row: Record) -> str:
    """
    The value that counts for a reader: the newest while it fires, afterwards how bad it was.

    >>> _value({"state": "resolved", "unit": "total", "value": 5.0, "worst_value": 7.0})
    '7'
    """
    name = "worst_value" if row["state"] == "resolved" else "value"
    return "-" if row[name] is None else words.amount(row[name], row["unit"])


def _value_of(row: Record) -> str:
    """
    When the value was heard; of the worst one nobody noted that.

    >>> _value_of({"state": "resolved", "value_at": "2026-01-05T12:00:00Z"})
    '-'
    """
    return "-" if row["state"] == "resolved" else words.instant(row["value_at"])


def _of(row: Record) -> str:
    return ", ".join(f"{name}={value}" for name, value in row["labels"].items()) or "-"


def _state(row: Record) -> str:
    """
    The state, and what a reader must know who takes it for a breach of this moment.

    >>> _state({"state": "firing", "fine_since": None, "because": "not measured", "inhibited_by": ""})
    'firing (no data)'
    """
    if row["state"] != "firing":
        return str(row["state"])
    if row["because"]:
        return "firing (no data)"
    if row["inhibited_by"]:
        return "firing (inhibited)"
    return "firing (calm)" if row["fine_since"] else "firing"


_COLUMNS = (
    Column(title="state", text=_state),
    field("alert", "alert"),
    field("severity", "severity"),
    Column(title="of", text=_of),
    Column(title="value", text=_value),
    _amount("threshold"),
    _amount("worst_value"),
    field("breaches-since", "active_at", words.instant, wide=True),
    field("fires-since", "fired_at", words.instant),
    field("resolved", "resolved_at", words.instant),
    field("metric", "metric", wide=True),
    Column(title="value-of", text=_value_of, wide=True),
    field("coverage", "coverage", lambda ratio: f"{ratio:.0%}", wide=True),
    field("because", "because", wide=True),
    field("inhibited-by", "inhibited_by", wide=True),
    field("summary", "summary", wide=True),
)


def alerts(  # noqa: PLR0913 (each parameter is an option)
    *,
    output: Output = "table",
    as_of: AsOf = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            help="How far back what has resolved is listed, for example 7d.",
            show_default="24h",
            metavar="LENGTH",
        ),
    ] = None,
    team: Team = None,
    service_class: Class = None,
    queue: Queue = None,
    model: Model = None,
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """List the alerts: what fires, what is pending, and what fired lately.

    A running serve evaluates them at each measurement, whether Prometheus does so too or not. VALUE is the
    last one beyond the threshold, of what has resolved the worst one (in JSON and CSV `worst_value`, and
    `value` is that at which it fired). `firing (calm)`: no value breached lately, and it will resolve;
    `firing (no data)`: nobody knows, so it stays; `firing (inhibited)`: another one fires for the same and is
    told. SUMMARY is the newest one, of what has resolved the first.
    """
    check_format(output)
    question = ReportQuestion(
        as_of_ms=options.instant(as_of),
        window=options.length(window),
        filters=options.filters(
            team=team, service_class=service_class, queue=queue, gpu_model=model, cluster=cluster
        ),
    )
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        document = reader.alerts(question)
    write(document, output, _COLUMNS)
    if output in {"table", "wide"}:
        _remarks(document)


def _remarks(document: Record) -> None:
    counts = dict.fromkeys(("firing", "pending", "resolved"), 0)
    for row in document["rows"]:
        counts[row["state"]] += 1
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    remark(f"{told} as of {document['as_of']}")
    for hint in document["hints"]:
        remark(f"note: {hint}")
