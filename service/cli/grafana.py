"""`grafana`: dashboards for Grafana."""

from pathlib import Path
from typing import Annotated

import typer

from domain.errors import UsageError
from service.cli.options import Config, Given


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("grafana")(grafana)


def grafana(
    *,
    folder: Annotated[Path, typer.Option("--folder", "-d", help="Write the dashboards here.")],
    dashboard_url: Annotated[
        str | None,
        typer.Option("--dashboard-url", help="Where the pages are.", show_default="as in the settings"),
    ] = None,
    config: Config = None,
) -> None:
    """Write dashboards for Grafana, one JSON file for each page.

    They are made from the metrics' declarations, and show what Prometheus scrapes.
    """
    from alerts.grafana import dashboards
    from analytics.metrics import REGISTRY

    address = dashboard_url or Given(config=config).settings().dashboard_url
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in dashboards(REGISTRY, dashboard_url=address).items():
            (folder / name).write_text(text, encoding="utf-8")
            typer.echo(str(folder / name))
    except OSError as cause:
        message = f"--folder {folder}: cannot be written ({cause.strerror or cause})"
        raise UsageError(message) from cause
