"""`rules`: the Prometheus rule file."""

from pathlib import Path
from typing import Annotated

import typer

from domain.errors import UsageError
from service.cli.options import Config, Given


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rules")(rules)


def rules(
    *,
    dashboard_url: Annotated[
        str | None,
        typer.Option("--dashboard-url", help="Where the pages are.", show_default="http://localhost:8501"),
    ] = None,
    runbooks_url: Annotated[
        str, typer.Option("--runbooks-url", help="Where the runbooks are.")
    ] = "docs/runbooks",
    hold_scale: Annotated[
        float,
        typer.Option(
            "--hold-scale", help="Factor on how long a breach must last, for a sample that is played fast."
        ),
    ] = 1.0,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Write here.", show_default="standard output")
    ] = None,
    config: Config = None,
) -> None:
    """Write the alert rules for Prometheus.

    They are made from the metrics and the targets of the policy.
    """
    from alerts.rules import rules_file
    from analytics.metrics import REGISTRY

    if hold_scale <= 0:
        message = f"--hold-scale {hold_scale}: expected a number above 0, for example 0.1"
        raise UsageError(message)
    settings = Given(config=config).settings()
    text = rules_file(
        REGISTRY,
        settings.thresholds(),
        dashboard_url=dashboard_url or f"http://localhost:{settings.server.dashboard_port}",
        runbooks_url=runbooks_url,
        hold_scale=hold_scale,
    )
    if file is None:
        typer.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as cause:
        message = f"--file {file}: cannot be written ({cause.strerror or cause})"
        raise UsageError(message) from cause
