"""`report`: an admin's questions answered in sentences and tables."""

import json
from typing import Annotated

import typer

from api.answers import ReportQuestion
from api.parameters import nearest
from domain.errors import UsageError
from service import report_text
from service.cli import options
from service.cli.options import AsOf, Class, Cluster, Config, DataDir, Given, Model, Queue, Team, Window
from service.cli.output import field, remark, table
from service.cli.reader import open_reader

FORMATS = ("table", "markdown", "csv", "json")
_COLUMNS = (field("name", "name"), field("title", "title"), field("answers", "question"))


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(  # noqa: PLR0913 (each parameter is an option)
    name: Annotated[
        str | None, typer.Argument(help="A report; without one: all of them.", metavar="[NAME]")
    ] = None,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="table, markdown, csv or json.", metavar="FORMAT")
    ] = "table",
    as_of: AsOf = None,
    window: Window = None,
    team: Team = None,
    service_class: Class = None,
    queue: Queue = None,
    model: Model = None,
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """List the reports, or show one."""
    from api.reports import REPORTS

    if output not in FORMATS:
        message = f"-o {output}: {nearest(output, FORMATS)}"
        raise UsageError(message)
    if name is None:
        rows = [{"name": r.name, "title": r.title, "question": r.question} for r in REPORTS.values()]
        typer.echo(table(rows, _COLUMNS))
        return
    if name not in REPORTS:
        message = f"report {name!r}: {nearest(name, list(REPORTS))}"
        raise UsageError(message)
    question = ReportQuestion(
        as_of_ms=options.instant(as_of),
        window=options.length(window),
        filters=options.filters(
            team=team, service_class=service_class, queue=queue, gpu_model=model, cluster=cluster
        ),
    )
    settings = Given(config=config, data_dir=data_dir).settings()
    with open_reader(settings) as reader:
        document = reader.report(name, question)
    document = report_text.addressed(document, dashboard_url=settings.dashboard_url, filters=question.filters)
    match output:
        case "json":
            typer.echo(json.dumps(document, indent=2))
        case "csv":
            typer.echo(report_text.to_csv(document), nl=False)
        case "markdown":
            typer.echo(report_text.markdown(document), nl=False)
        case _:
            typer.echo(report_text.plain(document))
            remark("\n>= : the true value is at least this; * : rests on fewer than five workloads")
