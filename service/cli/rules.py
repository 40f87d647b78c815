"""`rules`: the Prometheus rule file, and what belongs to it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from domain.errors import UsageError
from service.cli.options import Config, Given


class Format(StrEnum):
    """As what the rules are written; the last two say who scrapes and who is told."""

    RULES = "rules"
    PROMETHEUS_RULE = "prometheusrule"
    SERVICE_MONITOR = "servicemonitor"
    ALERTMANAGER = "alertmanager"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rules")(rules)


def rules(
    *,
    as_format: Annotated[
        Format,
        typer.Option(
            "--format",
            help=(
                "A rule file; the same as a PrometheusRule for the operator; a ServiceMonitor, with its"
                " Service; or an example"
                " of Alertmanager's configuration, with the rules of inhibition."
            ),
        ),
    ] = Format.RULES,
    dashboard_url: Annotated[
        str | None,
        typer.Option("--dashboard-url", help="Where the pages are.", show_default="as in the settings"),
    ] = None,
    runbooks_url: Annotated[
        str | None,
        typer.Option(
            "--runbooks-url",
            help="Where you keep the runbooks.",
            show_default="as in the settings, else the page Alerts",
        ),
    ] = None,
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

    They are made from the metrics' declarations; the limits are the settings' own.
    """
    if hold_scale <= 0:
        message = f"--hold-scale {hold_scale}: expected a number above 0, for example 0.1"
        raise UsageError(message)
    text = _written(
        as_format, Given(config=config), dashboard_url=dashboard_url, runbooks_url=runbooks_url,
        hold_scale=hold_scale,
    )  # fmt: skip
    write(text, file)


def write(text: str, file: Path | None) -> None:
    """To the file, or to standard output; raises UsageError where it cannot be written."""
    if file is None:
        typer.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as cause:
        message = f"--file {file}: cannot be written ({cause.strerror or cause})"
        raise UsageError(message) from cause


def _written(
    as_format: Format, given: Given, *, dashboard_url: str | None, runbooks_url: str | None, hold_scale: float
) -> str:
    from alerts.declared import declared
    from alerts.inhibition import configuration
    from alerts.operator import prometheus_rule, scraping
    from alerts.rules import rules_file
    from analytics.metrics import REGISTRY

    if as_format is Format.SERVICE_MONITOR:
        return scraping()
    if as_format is Format.ALERTMANAGER:
        return configuration(declared(REGISTRY))
    settings = given.settings()
    text = rules_file(
        REGISTRY,
        settings.thresholds(),
        dashboard_url=dashboard_url or settings.dashboard_url,
        runbooks_url=runbooks_url or settings.alerting.runbooks_url,
        hold_scale=hold_scale,
    )
    return prometheus_rule(text) if as_format is Format.PROMETHEUS_RULE else text
