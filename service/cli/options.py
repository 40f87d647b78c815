"""Options that many commands take, and what they mean together."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from api.answers import Filters
from api.parameters import ALIASES, filters_of
from domain.window import parse_duration, parse_instant
from service.kubeconfig import current_context
from service.settings import Settings
from service.settings_file import load_settings

Config: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", envvar="GPULEDGER_CONFIG", help="Settings, a YAML file.", show_default=False),
]
DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where the store lies.", show_default="~/.local/share/gpuledger"),
]
DemoDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Where the sample's store is made and left.",
        show_default="a folder that goes with the demo",
    ),
]
Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="Watch the cluster of this kubeconfig, instead of those of the settings.",
        show_default="the usual one",
    ),
]
Context: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--context",
        help="Watch the cluster of this context, and name it so.",
        show_default="the kubeconfig's current one",
        metavar="NAME",
    ),
]
Output: TypeAlias = Annotated[
    str, typer.Option("--output", "-o", help="table, wide, json, csv or parquet.", metavar="FORMAT")
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="The instant to answer for, RFC 3339; facts from then on do not count.",
        show_default="now, or the end of imported data",
        metavar="INSTANT",
    ),
]
Window: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--window",
        help="Length of the window, for example 24h or 7d.",
        show_default="the policy's",
        metavar="LENGTH",
    ),
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--by",
        help='Labels to keep apart, with commas; "" for one total.',
        show_default="the metric's own",
        metavar="LABELS",
    ),
]
Team: TypeAlias = Annotated[
    list[str] | None, typer.Option("--team", help='Only this team; may be repeated; "" for none.')
]
User: TypeAlias = Annotated[
    list[str] | None, typer.Option("--user", help='Only this user; may be repeated; "" for an unknown one.')
]
Class: TypeAlias = Annotated[
    list[str] | None, typer.Option("--class", help="Only this service class; may be repeated.")
]
Queue: TypeAlias = Annotated[
    list[str] | None, typer.Option("--queue", help='Only this queue; may be repeated; "" for none.')
]
Model: TypeAlias = Annotated[
    list[str] | None, typer.Option("--model", help="Only this GPU model; may be repeated.")
]
Cluster: TypeAlias = Annotated[
    list[str] | None, typer.Option("--cluster", help="Only this cluster; may be repeated.")
]
Population: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--population",
        help="Only work that asks GPUs (gpu), or none (cpu); may be repeated; for metrics that have it.",
        show_default="gpu",
    ),
]
Host: TypeAlias = Annotated[
    str | None, typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1")
]
Port: TypeAlias = Annotated[int | None, typer.Option("--port", help="The API's port.", show_default="8080")]
DashboardPort: TypeAlias = Annotated[
    int | None, typer.Option("--dashboard-port", help="The dashboard's port.", show_default="8501")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Options that a child process must be given again."""

    config: Path | None = None
    data_dir: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    host: str | None = None
    port: int | None = None
    dashboard_port: int | None = None

    def settings(self) -> Settings:
        """The settings in force: file, then variables, then these options."""
        overrides: dict[str, Any] = {
            "store.data_dir": self.data_dir,
            "clusters": self._clusters(),
            "server.host": self.host,
            "server.port": self.port,
            "server.dashboard_port": self.dashboard_port,
        }
        return load_settings(self.config, environment=os.environ, overrides=overrides)

    def arguments(self) -> list[str]:
        """As the command line spells them."""
        pairs = {
            "--config": self.config,
            "--data-dir": self.data_dir,
            "--kubeconfig": self.kubeconfig,
            "--context": self.context,
            "--host": self.host,
            "--port": self.port,
        }
        return [part for name, value in pairs.items() if value is not None for part in (name, str(value))]

    def _clusters(self) -> list[dict[str, str | None]] | None:
        """The one cluster that a kubeconfig or a context stands for; None where neither was given."""
        if self.kubeconfig is None and self.context is None:
            return None
        if self.kubeconfig is None:
            return [{"name": self.context, "context": self.context}]
        context = current_context(self.kubeconfig) if self.context is None else self.context
        return [{"name": context, "kubeconfig": str(self.kubeconfig), "context": context}]


def filters(**given: list[str] | None) -> Filters:
    """Filters by dimension, of the options that were given."""
    return filters_of({name: values for name, values in given.items() if values})


def instant(text: str | None) -> int | None:
    """Milliseconds since the epoch; raises UsageError."""
    return None if text is None else parse_instant(text)


def length(text: str | None) -> Any:
    """A duration; raises UsageError."""
    return None if text is None else parse_duration(text)


def labels(text: str | None) -> tuple[str, ...] | None:
    """Labels of a comma list; the short words of the filters count too."""
    if text is None:
        return None
    return tuple(ALIASES.get(label.strip(), label.strip()) for label in text.split(",") if label.strip())
