"""Where the metrics of GPUs come from: a section of the settings."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from domain.gpu_sample import LONGEST_STEP_MS
from service.setting_types import Duration, Port, Section


def _url(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        message = "an address, for example http://prometheus.monitoring:9090"
        raise ValueError(message)
    return value


def _step(value: timedelta) -> timedelta:
    longest = timedelta(milliseconds=LONGEST_STEP_MS)
    if value % timedelta(seconds=1) or not timedelta(seconds=1) <= value <= longest:
        message = "whole seconds from 1s to 30m, for example 30s"
        raise ValueError(message)
    return value


Url = Annotated[str, AfterValidator(_url)]


class DiscoverSettings(Section):
    """
    Where exporters are found, looked for once a minute.

    By `pods`: those with the label selector. By `services`: the endpoints of services with it. Without a port
    the one that they name `metrics` is asked, or their first.
    """

    by: Literal["pods", "services"] = "pods"
    namespace: str = ""
    selector: Annotated[str, Field(min_length=1)] = "app=nvidia-dcgm-exporter"
    port: Port = 0
    scheme: Literal["http", "https"] = "http"


class GpuMetricsSettings(Section):
    """
    The GPU metrics of a cluster: from a Prometheus, from listed exporters, or from those that are discovered.

    `match` are further label matchers of the query, such as `job="dcgm-exporter"`. Of a Prometheus that
    was never read before, as much as `backfill` is read.
    """

    cluster: Annotated[str, Field(min_length=1)]
    prometheus: Url | None = None
    match: str = ""
    token_file: Path | None = None
    exporters: tuple[Url, ...] = ()
    discover: DiscoverSettings | None = None
    step: Annotated[Duration, AfterValidator(_step)] = timedelta(seconds=30)
    backfill: Duration = timedelta(hours=24)

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if sum((self.prometheus is not None, bool(self.exporters), self.discover is not None)) != 1:
            message = "either prometheus, an address, or exporters, a list of addresses, or discover"
            raise ValueError(message)
        return self
