"""How much longer work took than it ran, with a floor under the run."""

from collections.abc import Sequence
from typing import Final

from analytics.censored import started_quantile
from analytics.evaluate import grouped, whole
from analytics.waits import QUANTILES
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_SECOND

NOTHING_ENDED: Final = "no workload that was placed ended in the window"


def bounded_slowdown(waited_ms: int, ran_ms: int, floor_ms: int) -> float:
    """
    Wait and run over the run, which counts as at least the floor; never below 1.

    Source: Feitelson and Rudolph, Metrics and Benchmarking for Parallel Job Scheduling, 1998.

    >>> bounded_slowdown(120_000, 60_000, 60_000), bounded_slowdown(0, 1_000, 60_000)
    (3.0, 1.0)
    """
    return max(1.0, (waited_ms + ran_ms) / max(ran_ms, floor_ms))


def slowdown_percentiles(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Percentiles by linear interpolation (type 7), from rows with `waited_ms` and `ran_ms`."""
    floor_ms = round(ask.policy.slowdown_shortest_run.total_seconds() * MS_PER_SECOND)
    samples = []
    for labels, members in grouped(rows, ask.by):
        found = [bounded_slowdown(whole(row, "waited_ms"), whole(row, "ran_ms"), floor_ms) for row in members]
        samples += [
            Sample(
                labels={**labels, "quantile": str(quantile)},
                value=started_quantile(found, quantile),
                few=len(found) < ask.policy.few_below,
            )
            for quantile in QUANTILES
        ]
    return samples or [Sample.undefined({}, NOTHING_ENDED)]
