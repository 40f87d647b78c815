"""`pending`: who waits for quota, in the order in which Kueue would admit."""

from typing import Annotated

import typer

from api.answers import ListQuestion
from api.parameters import MAX_PAGE_SIZE
from service import words
from service.cli import options
from service.cli.options import (
    AsOf,
    Class,
    Cluster,
    Config,
    DataDir,
    Given,
    Model,
    Output,
    Queue,
    Team,
    User,
)
from service.cli.output import check_format, field, remark, write
from service.cli.reader import open_reader


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pending")(pending)


_COLUMNS = (
    field("queue", "queue"),
    field("ahead", "ahead"),
    field("by-our-order", "ahead_by_our_order"),
    field("namespace", "namespace"),
    field("name", "name"),
    field("team", "team"),
    field("class", "service_class"),
    field("gpus", "requested_gpus", words.number),
    field("waits", "waiting_seconds", words.duration),
    field("told", "age_seconds", words.duration),
    field("because", "because", wide=True),
    field("ahead-in-local-queue", "ahead_in_local_queue", wide=True),
    field("cluster", "cluster", wide=True),
    field("uid", "uid", wide=True),
    field("kind", "kind", wide=True),
    field("user", "user", wide=True),
    field("priority-class", "priority_class", wide=True),
    field("submitted", "submitted_at", words.instant, wide=True),
)


def pending(  # noqa: PLR0913 (each parameter is an option)
    *,
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
    """List who waits for quota, queue by queue, in the order in which Kueue would admit.

    AHEAD counts who comes before by Kueue, as it told it so long ago; BY-OUR-ORDER by priority, then time.
    """
    check_format(output)
    question = ListQuestion(
        as_of_ms=options.instant(as_of),
        filters=options.filters(
            team=team, user=user, service_class=service_class, queue=queue, gpu_model=model, cluster=cluster
        ),
        page=page,
        page_size=page_size,
    )
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        document = reader.pending(question)
    write(document, output, _COLUMNS)
    if output in {"table", "wide"}:
        rows = document["rows"]
        remark(f"{len(rows)} of {document['total']} workloads that wait for quota as of {document['as_of']}")
        for because in sorted({row["because"] for row in rows if row["because"]}):
            remark(f"note: Kueue's order is not known of all: {because}")
        for hint in document["hints"]:
            remark(f"note: {hint}")
