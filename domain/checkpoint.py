"""Checkpoints that a job tells of, and by which way."""

from dataclasses import dataclass
from enum import StrEnum


class ToldBy(StrEnum):
    """How a checkpoint was told. An annotation of another key than the usual one is called by that key."""

    ANNOTATION = ""
    PUSH = "push"
    METRIC = "metric"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointReport:
    """
    A job's word that it saved its work at an instant.

    It names its pod, its workload or an object of it by uid; `cluster` may stay out where there is one
    only. `at_ms` None is the instant at which the word arrives.
    """

    cluster: str = ""
    namespace: str = ""
    pod: str = ""
    workload: str = ""
    uid: str = ""
    at_ms: int | None = None
    step: int | None = None
    size_bytes: int | None = None
    duration_seconds: float | None = None

    @property
    def words(self) -> str:
        """
        What it says beside the instant, for a reader.

        >>> CheckpointReport(size_bytes=3_200_000_000, duration_seconds=41.5).words
        '3.2 GB, written in 41.5 s'
        """
        size = [] if self.size_bytes is None else [f"{self.size_bytes / 1e9:.1f} GB"]
        length = [] if self.duration_seconds is None else [f"written in {self.duration_seconds:g} s"]
        return ", ".join(size + length)
