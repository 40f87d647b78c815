"""`serve`, `dashboard`, `up`, `demo`: the processes."""

import logging
import os
import subprocess
import sys
from typing import Annotated

import typer

from api.auth import is_loopback
from domain.errors import SettingsError
from sample_data import Sample
from service import children
from service.cli.options import (
    Config,
    Context,
    DashboardPort,
    DataDir,
    DemoDir,
    Given,
    Host,
    Kubeconfig,
    Port,
)
from service.settings import Settings
from service.stopping import Stop, on_signals

API_URL = "GPULEDGER_API_URL"


def add_to(app: typer.Typer) -> None:
    """Add the commands, in the order in which somebody new needs them."""
    app.command("demo")(demo)
    app.command("up")(up)
    app.command("serve")(serve)
    app.command("dashboard")(dashboard)


def serve(
    *,
    config: Config = None,
    data_dir: DataDir = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    host: Host = None,
    port: Port = None,
) -> None:
    """Watch clusters, measure, and answer over HTTP."""
    settings = Given(
        config=config, data_dir=data_dir, kubeconfig=kubeconfig, context=context, host=host, port=port
    ).settings()
    from service.runtime import Runtime

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s level=%(levelname)s logger=%(name)s msg=%(message)s"
    )
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
    runtime = Runtime(settings)
    with on_signals(runtime.stopping), runtime:
        typer.echo(f"API on {runtime.url}/api/v1/metrics", err=True)
        runtime.wait()


def dashboard(
    *,
    api_url: Annotated[
        str | None, typer.Option("--api-url", help="Where serve answers.", show_default="this machine's")
    ] = None,
    config: Config = None,
    host: Host = None,
    dashboard_port: DashboardPort = None,
) -> None:
    """Show the pages; they ask a running serve."""
    settings = Given(config=config, host=host, dashboard_port=dashboard_port).settings()
    check_dashboard_host(settings)
    address = api_url or os.environ.get(API_URL) or api_address(settings)
    environment = children.dashboard_environment(settings, api_url=address)
    with on_signals(Stop()) as stop:
        child = children.start(children.dashboard_command(settings), environment=environment)
        raise typer.Exit(children.watch({"dashboard": child}, stop))


def up(  # noqa: PLR0913 (each parameter is an option)
    *,
    config: Config = None,
    data_dir: DataDir = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    host: Host = None,
    port: Port = None,
    dashboard_port: DashboardPort = None,
) -> None:
    """Run serve and dashboard together on this machine."""
    given = Given(
        config=config,
        data_dir=data_dir,
        kubeconfig=kubeconfig,
        context=context,
        host=host,
        port=port,
        dashboard_port=dashboard_port,
    )
    settings = given.settings()
    settings.authentication().check_bind(settings.server.host)
    check_dashboard_host(settings)
    with on_signals(Stop()) as stop:
        _up(settings, given, stop)


def _up(settings: Settings, given: Given, stop: Stop) -> None:
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        serve_command = [sys.executable, "-m", "service.cli", "serve", *given.arguments()]
        running["serve"] = children.start(serve_command)
        api = children.wait_for_serve(settings.serve_file, running["serve"], stop)
        if api is None:
            raise typer.Exit(children.end_all(running))
        running["dashboard"] = children.start(
            children.dashboard_command(settings),
            environment=children.dashboard_environment(settings, api_url=api),
        )
        page = children.dashboard_address(settings)
        if children.wait_for(f"{page}/_stcore/health", running["dashboard"], stop):
            typer.echo(f"dashboard   {page}")
            typer.echo(f"API         {api}/api/v1/metrics")
            typer.echo(f"Prometheus  {api}/metrics")
            typer.echo("Ctrl-C stops both.")
        raise typer.Exit(children.watch(running, stop))
    finally:
        children.end_all(running)


def demo(  # noqa: PLR0913 (each parameter is an option)
    *,
    sample: Annotated[
        Sample | None,
        typer.Option(
            "--sample",
            help="Two weeks of 32 nodes, or two hours of seven.",
            show_default="fortnight",
        ),
    ] = None,
    play: Annotated[
        float | None,
        typer.Option(
            "--play",
            help="Play the last hours of the sample, this many times as fast as real time.",
            metavar="SPEED",
            min=0.1,
        ),
    ] = None,
    play_hours: Annotated[
        float | None,
        typer.Option(
            "--play-hours",
            help="How much of it is played; what lies before is there from the start.",
            metavar="HOURS",
            show_default="6; 1 of the small sample",
            min=0.1,
            max=24 * 14,
        ),
    ] = None,
    alertmanager: Annotated[
        str | None,
        typer.Option("--alertmanager", help="Tell this Alertmanager of the sample's alerts.", metavar="URL"),
    ] = None,
    data_dir: DemoDir = None,
    host: Host = None,
    port: Port = None,
    dashboard_port: DashboardPort = None,
) -> None:
    """Show everything on a sample cluster."""
    from service import demo as shown

    shown.demo(
        sample=sample,
        play=play,
        host=host,
        port=port,
        dashboard_port=dashboard_port,
        data_dir=data_dir,
        alertmanager=alertmanager,
        played_minutes=None if play_hours is None else round(play_hours * 60),
    )


def api_address(settings: Settings) -> str:
    """Where a process on this machine finds the API of these settings."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.server.host, settings.server.host)  # noqa: S104
    return (
        f"http://[{host}]:{settings.server.port}" if ":" in host else f"http://{host}:{settings.server.port}"
    )


def check_dashboard_host(settings: Settings) -> None:
    """
    Pages without authentication are for this machine only, as the API behind them.

    Raises:
        SettingsError: other machines could look.
    """
    if settings.auth.mode == "none" and not is_loopback(settings.server.host):
        message = (
            f'server.host = "{settings.server.host}" with auth.mode = "none": everyone who reaches the pages'
            ' would be admin; expected 127.0.0.1, or auth.mode = "header" behind an authenticating proxy'
        )
        raise SettingsError(message)
