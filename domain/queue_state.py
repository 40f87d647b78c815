"""What somebody else counted in a queue: a measurement of theirs, and no workloads of ours."""

from typing import NamedTuple

import msgspec


class Counts(NamedTuple):
    """
    Jobs and GPUs of a queue; None: that was not counted.

    `total_micro_gpus` may exceed the held and the idle ones together: others are broken or reserved.
    """

    running_workloads: int | None = None
    waiting_workloads: int | None = None
    held_micro_gpus: int | None = None
    waiting_micro_gpus: int | None = None
    idle_micro_gpus: int | None = None
    total_micro_gpus: int | None = None


class QueueState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was counted of a queue again and again in `[start_ms, end_ms)`."""

    queue: str
    start_ms: int
    end_ms: int
    counts: Counts
