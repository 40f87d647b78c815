"""`metrics` and `workloads`: ask a running `serve`, else the store."""

from typing import Annotated

import typer

from api.answers import ListQuestion, Question, Record
from api.parameters import MAX_PAGE_SIZE, states_of
from domain.observed import coverage_words
from service import words
from service.cli import options
from service.cli.options import (
    AsOf,
    By,
    Class,
    Cluster,
    Config,
    DataDir,
    Given,
    Model,
    Output,
    Population,
    Queue,
    Team,
    User,
    Window,
)
from service.cli.output import Column, check_format, field, remark, table, write
from service.cli.reader import open_reader


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("metrics")(metrics)
    app.command("workloads")(workloads)


def _gpu_hours(seconds: float | None) -> str:
    return words.number(None if seconds is None else seconds / 3600)


def _at_least(hours: float | None, *, bound: bool) -> str:
    return words.at_least(hours, words.number(hours), bound=bound)


_METRIC_COLUMNS = (
    field("name", "name"),
    field("unit", "unit"),
    field("definition", "definition"),
    field("labels", "labels", ",".join, wide=True),
    field("dimensions", "dimensions", ",".join, wide=True),
    field("source", "source", wide=True),
)
_WORKLOAD_COLUMNS = (
    field("uid", "uid"),
    field("namespace", "namespace"),
    field("name", "name"),
    field("team", "team"),
    field("queue", "queue"),
    field("class", "service_class"),
    field("gpus", "requested_gpus", words.number),
    field("state", "state"),
    field("waited", "queue_wait_seconds", words.duration),
    field("waits-now", "waiting_seconds", words.duration),
    Column(
        title="wasted-gpu-h",
        text=lambda row: _at_least(row["wasted_gpu_hours"], bound=row["wasted_lower_bound"]),
    ),
    field("submitted", "submitted_at", words.instant),
    field("reason", "reason", wide=True),
    field("cluster", "cluster", wide=True),
    field("kind", "kind", wide=True),
    field("user", "user", wide=True),
    field("priority-class", "priority_class", wide=True),
    field("model", "gpu_model", wide=True),
    field("placed", "first_placed_at", words.instant, wide=True),
    field("running", "first_running_at", words.instant, wide=True),
    field("ended", "ended_at", words.instant, wide=True),
    field("outcome", "outcome", wide=True),
    field("requeue-wait", "requeue_wait_seconds", words.duration, wide=True),
    field("preemptions", "preemptions", wide=True),
    field("gpu-hours", "gpu_seconds", _gpu_hours, wide=True),
)
_CAUSE_COLUMNS = (
    field("cause", "cause"),
    Column(title="gpu-hours", text=lambda row: _at_least(row["gpu_hours"], bound=row["lower_bound"])),
    Column(title="wasted", text=lambda row: _at_least(row["charged_gpu_hours"], bound=row["lower_bound"])),
)
_SPAN_COLUMNS = (
    field("state", "state"),
    field("from", "start_at", words.instant),
    field("to", "end_at", words.instant),
    field("reason", "reason"),
)
_POD_COLUMNS = (
    field("attempt", "attempt"),
    field("outcome", "outcome"),
    field("pod", "name"),
    field("node", "node"),
    field("gpus", "gpus", words.number),
    field("bound", "bound_at", words.instant),
    field("started", "started_at", words.instant),
    field("released", "released_at", words.instant),
    field("restarts", "restarts"),
    field("preempted-by", "preempted_by_name"),
    field("preemptor-uid", "preempted_by", wide=True),
    field("pod-uid", "uid", wide=True),
)


def metrics(  # noqa: PLR0913 (each parameter is an option)
    name: Annotated[
        str | None, typer.Argument(help="A metric; without one: all of them.", metavar="[NAME]")
    ] = None,
    *,
    output: Output = "table",
    as_of: AsOf = None,
    window: Window = None,
    by: By = None,
    team: Team = None,
    service_class: Class = None,
    queue: Queue = None,
    model: Model = None,
    cluster: Cluster = None,
    population: Population = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """List the metrics, or show the values of one."""
    check_format(output)
    question = Question(
        as_of_ms=options.instant(as_of),
        window=options.length(window),
        by=options.labels(by),
        filters=options.filters(
            team=team,
            service_class=service_class,
            queue=queue,
            gpu_model=model,
            cluster=cluster,
            population=population,
        ),
    )
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        if name is None:
            write(reader.metrics(), output, _METRIC_COLUMNS)
            return
        document = reader.metric(name, question)
    write(document, output, _value_columns(document))
    if output in {"table", "wide"}:
        _remark_on(document)


def workloads(  # noqa: PLR0913 (each parameter is an option)
    uid: Annotated[
        str | None, typer.Argument(help="A workload's uid; without one: a list.", metavar="[UID]")
    ] = None,
    *,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            help="Only this state, for example queued; waiting stands for all that wait; may be repeated.",
        ),
    ] = None,
    sort: Annotated[
        str, typer.Option("--sort", help="Column of the JSON to order by; a leading - means downwards.")
    ] = "-submitted_at",
    page: Annotated[int, typer.Option("--page", min=1, help="Which page.")] = 1,
    page_size: Annotated[
        int, typer.Option("--page-size", min=1, max=MAX_PAGE_SIZE, help="Rows of a page.")
    ] = 100,
    output: Output = "table",
    as_of: AsOf = None,
    team: Team = None,
    user: User = None,
    service_class: Class = None,
    queue: Queue = None,
    model: Model = None,
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """List the workloads that ask GPUs, or show one in full."""
    check_format(output)
    question = ListQuestion(
        as_of_ms=options.instant(as_of),
        states=states_of(state or [], named="--state"),
        filters=options.filters(
            team=team, user=user, service_class=service_class, queue=queue, gpu_model=model, cluster=cluster
        ),
        sort=sort,
        page=page,
        page_size=page_size,
    )
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        if uid is not None:
            _write_one(reader.workload(uid, question.as_of_ms), output)
            return
        document = reader.workloads(question)
    write(document, output, _WORKLOAD_COLUMNS)
    if output in {"table", "wide"}:
        shown = len(document["rows"])
        remark(f"{shown} of {document['total']} workloads as of {document['as_of']}")
        _tell(document["hints"])


def _value_columns(document: Record) -> list[Column]:
    labels = list(dict.fromkeys(label for row in document["rows"] for label in row["labels"]))

    def of_label(label: str) -> Column:
        return Column(title=label, text=lambda row: row["labels"].get(label) or "-")

    return [
        *(of_label(label) for label in labels),
        Column(title="value", text=lambda row: words.figure(row, document["unit"])),
        Column(title=document["unit"], text=lambda row: words.number(row["value"]), wide=True),
    ]


def _remark_on(document: Record) -> None:
    """When, over what and how complete; and what the marks mean, where there are any."""
    parts = [f"{document['metric']} in {document['unit']}, as of {document['as_of']}"]
    if document["window"]:
        parts.append(f"window {document['window']}")
    coverage = document["coverage"]
    missing = coverage_words(coverage, windowed=document["window"] is not None)
    parts.append("coverage unknown" if coverage is None else missing or "coverage 100%")
    remark(", ".join(parts))
    _tell(document["hints"])
    if any(row["lower_bound"] and row["value"] for row in document["rows"]):
        remark(">= : the true value is at least this")
    if any(row["few"] for row in document["rows"]):
        remark("*  : rests on fewer than five workloads")


def _tell(hints: list[str]) -> None:
    """What is odd about the names that were asked for."""
    for hint in hints:
        remark(f"note: {hint}")


def _write_one(workload: Record, output: str) -> None:
    pods = [
        pod
        | {key: attempt[key] for key in ("outcome", "preempted_by", "preempted_by_name")}
        | {"attempt": attempt["number"]}
        for attempt in workload["attempts"]
        for pod in attempt["pods"]
    ]
    if output in {"json", "csv", "parquet"}:
        # A table has one grain: that of the pods' stays is the finest. JSON has it all.
        write(workload if output == "json" else {"rows": pods}, output, ())
        return
    width = max(len(column.title) for column in _WORKLOAD_COLUMNS)
    for column in _WORKLOAD_COLUMNS:
        typer.echo(f"{column.title.upper().ljust(width)}   {column.text(workload)}")
    if workload["skewed"]:
        typer.echo(f"{'SKEWED'.ljust(width)}   {workload['skewed']}; no figure counts it")
    if workload["gpu_time_by_cause"]:
        typer.echo("\n" + table(workload["gpu_time_by_cause"], _CAUSE_COLUMNS))
    typer.echo("\n" + table(workload["spans"], _SPAN_COLUMNS))
    if pods:
        typer.echo(
            "\n" + table(pods, [column for column in _POD_COLUMNS if output == "wide" or not column.wide])
        )
