"""Where the metrics of GPUs come from: a section of the settings."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from domain.gpu_sample import LONGEST_STEP_MS
from service.setting_types import Duration, Section


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


class GpuMetricsSettings(Section):
    """
    The GPU metrics of a cluster: from a Prometheus, or from exporters.

    `match` are further label matchers of the query, such as `job="dcgm-exporter"`. Of a Prometheus that
    was never read before, as much as `backfill` is read.
    """

    cluster: Annotated[str, Field(min_length=1)]
    prometheus: Url | None = None
    match: str = ""
    token_file: Path | None = None
    exporters: tuple[Url, ...] = ()
    step: Annotated[Duration, AfterValidator(_step)] = timedelta(seconds=30)
    backfill: Duration = timedelta(hours=24)

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.prometheus is None) is not bool(self.exporters):
            message = "either prometheus, an address, or exporters, a list of addresses"
            raise ValueError(message)
        return self
