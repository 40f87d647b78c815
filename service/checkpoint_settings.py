"""How jobs tell of checkpoints: a section of the settings."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from collector.checkpoints import ANNOTATION
from service.gpu_metrics_settings import Url
from service.setting_types import Duration, Section


def _often_enough(value: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= value <= timedelta(hours=1):
        message = "a length from 1s to 1h, for example 1m"
        raise ValueError(message)
    return value


class CheckpointMetricSettings(Section):
    """
    A metric that tells when each pod of a cluster saved its work, in seconds since the epoch.

    Of a Prometheus, what `query` gives; of `targets`, which are read like any exporter, the families whose
    name ends in `name_ends_with`. A series names its pod by the labels `namespace` and `pod`.
    """

    cluster: Annotated[str, Field(min_length=1)]
    prometheus: Url | None = None
    query: str = '{__name__=~".+_last_checkpoint_timestamp_seconds"}'
    token_file: Path | None = None
    targets: tuple[Url, ...] = ()
    name_ends_with: Annotated[str, Field(min_length=1)] = "_last_checkpoint_timestamp_seconds"
    every: Annotated[Duration, AfterValidator(_often_enough)] = timedelta(minutes=1)

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.prometheus is None) is not bool(self.targets):
            message = "either prometheus, an address, or targets, a list of addresses"
            raise ValueError(message)
        return self


class CheckpointSettings(Section):
    """
    How jobs tell of checkpoints.

    `annotations` are keys beside gpuledger.io/last-checkpoint-time. `token_files` holds, by team, a file
    with a token that may tell of checkpoints of that team's work, and nothing else.
    """

    annotations: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    metrics: tuple[CheckpointMetricSettings, ...] = ()
    token_files: dict[str, Path] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """All annotations that tell of a checkpoint."""
        return tuple(dict.fromkeys((ANNOTATION, *self.annotations)))
