"""How much longer work took than it ran, with a floor under the run."""

from typing import Final

import numpy as np
import polars as pl

from analytics.censored import Floats, Longs, started_quantile
from analytics.frames import groups
from analytics.waits import QUANTILES
from domain.metric import Ask, Sample, Takes
from domain.window import MS_PER_SECOND

NOTHING_ENDED: Final = "no workload that was placed ended in the window"
# How long a workload waited, and ran, in all.
COURSE: Final = Takes(("waited_ms", "ran_ms"))


def bounded_slowdown(waited_ms: Longs | int, ran_ms: Longs | int, floor_ms: int) -> Floats:
    """
    Wait and run over the run, which counts as at least the floor; never below 1.

    Source: Feitelson and Rudolph, Metrics and Benchmarking for Parallel Job Scheduling, 1998.

    >>> bounded_slowdown(np.array([120_000, 0]), np.array([60_000, 1_000]), 60_000).tolist()
    [3.0, 1.0]
    """
    return np.maximum(1.0, (waited_ms + ran_ms) / np.maximum(ran_ms, floor_ms))


def slowdown_percentiles(frame: pl.DataFrame, ask: Ask) -> list[Sample]:
    """Percentiles by linear interpolation (type 7), from rows with the columns of `COURSE`."""
    floor_ms = round(ask.policy.slowdown_shortest_run.total_seconds() * MS_PER_SECOND)
    samples = []
    for labels, members in groups(frame, ask.by, COURSE):
        found = bounded_slowdown(members["waited_ms"], members["ran_ms"], floor_ms)
        samples += [
            Sample(
                labels={**labels, "quantile": str(quantile)},
                value=started_quantile(found, quantile),
                few=len(found) < ask.policy.few_below,
            )
            for quantile in QUANTILES
        ]
    return samples or [Sample.undefined({}, NOTHING_ENDED)]
