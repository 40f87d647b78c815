"""`config`: the settings in force, with secrets masked."""

import os
from typing import Any

import typer
import yaml

from collector.addresses import Address
from service.cli.options import Config, DataDir, Given
from service.settings import Settings, plain

MASK = "********"

_group = typer.Typer(help="The settings in force.", no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(_group, name="config")


@_group.command("show")
def show(*, config: Config = None, data_dir: DataDir = None) -> None:
    """Print the settings: file, then GPULEDGER_* variables, then options. Secrets are masked."""
    settings = Given(config=config, data_dir=data_dir).settings()
    typer.echo(yaml.safe_dump(masked(settings), sort_keys=False, allow_unicode=True), nl=False)


@_group.command("check")
def check(*, config: Config = None, data_dir: DataDir = None) -> None:
    """Check the settings and the files with secrets that they name."""
    from alerts.declared import declared, refuse_unknown_limits
    from analytics.metrics import REGISTRY
    from service.announcing import access_of

    settings = Given(config=config, data_dir=data_dir).settings()
    refuse_unknown_limits(declared(REGISTRY), settings.thresholds())
    settings.authentication().check_bind(settings.server.host)
    settings.token()
    for one in settings.alerting.alertmanagers:
        access_of(one)
    origin = str(config) if config else "no file"
    variables = sum(name.startswith("GPULEDGER_") for name in os.environ)
    typer.echo(f"the settings are right ({origin}, {variables} GPULEDGER_* variables)")


def masked(settings: Settings) -> dict[str, Any]:
    """Settings as YAML has them; of a secret only that there is one."""
    shown: dict[str, Any] = plain(settings)
    for section, name in ((shown["auth"]["header"], "secret"), (shown["auth"], "token")):
        if section[f"{name}_file"] is not None:
            section[name] = MASK
    without_passwords: dict[str, Any] = _without_passwords(shown)
    return without_passwords


def _without_passwords(value: Any) -> Any:
    """The same, but for names and passwords in addresses: they are secrets too, wherever they stand."""
    if isinstance(value, dict):
        return {name: _without_passwords(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_without_passwords(member) for member in value]
    if not isinstance(value, str) or (address := Address.of(value)).login is None:
        return value
    scheme, _, rest = address.url.partition("://")
    return f"{scheme}://{MASK}@{rest}"
