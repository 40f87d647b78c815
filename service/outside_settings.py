"""What others tell of queues and gateways, for a comparison and for export: sections of the settings."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from service.gpu_metrics_settings import Url
from service.setting_types import Duration, Section


def _often_enough(value: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= value <= timedelta(hours=1):
        message = "a length from 1s to 1h, for example 30s"
        raise ValueError(message)
    return value


Every = Annotated[Duration, AfterValidator(_often_enough)]


class KueueMetricsSettings(Section):
    """
    Kueue's own metrics of a cluster, to compare ours with: from a Prometheus, or from Kueue itself.

    A difference is told when it is larger than `tolerated` workloads or GPUs, and than `tolerated_ratio`
    of the larger figure, `times` in a row.
    """

    cluster: Annotated[str, Field(min_length=1)]
    prometheus: Url | None = None
    match: str = ""
    token_file: Path | None = None
    targets: tuple[Url, ...] = ()
    every: Every = timedelta(seconds=30)
    tolerated: Annotated[float, Field(ge=0)] = 2.0
    tolerated_ratio: Annotated[float, Field(ge=0, le=1)] = 0.05
    times: Annotated[int, Field(ge=1)] = 3

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.prometheus is None) is not bool(self.targets):
            message = "either prometheus, an address, or targets, a list of addresses"
            raise ValueError(message)
        return self


class GatewaySettings(Section):
    """
    What a gateway of inference says of its own queue, by queries to a Prometheus.

    `depth` is requests that wait; `too_many_requests` and `shed` are refusals a second, by status 429 and by
    shedding load. What has no query has no series.
    """

    name: Annotated[str, Field(min_length=1)]
    cluster: Annotated[str, Field(min_length=1)]
    prometheus: Url
    token_file: Path | None = None
    depth: str = ""
    too_many_requests: str = ""
    shed: str = ""
    every: Every = timedelta(seconds=30)
