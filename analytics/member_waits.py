"""
Waits of single pods: of members lost after the placement, and of later pods of a Job without a gang.

They put no workload back into the queue and are in no percentile of first waits. Definitions say that
they are GPU-weighted: a wait counts as often as its pod asks GPUs, in micro-GPU. The `started`
percentile is then the smallest wait by which that share of the GPUs was placed; to interpolate between
neighbours as for workloads would depend on the unit in which GPUs are counted.
"""

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Final

from analytics.censored import Quantile, Stay, Stays, survival_quantiles_of_groups
from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.waits import QUANTILES
from domain.metric import Ask, Row, Sample
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR, MS_PER_SECOND

UNKNOWN_SHARE: Final = "the GPUs that a waiting pod asks are not known"
NO_WAIT: Final = "no pod waited by itself in the window"
NO_END: Final = "no pod that waited by itself was placed in the window"

MEMBER_WAITS: Final = """\
-- One row per wait of a single pod that lay in [$window_start_ms, $as_of_ms), by the clock at either end of
-- the window, and whether it ended inside in a binding; and a row of nulls per combination of dimensions.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    greatest($window_start_ms - start_ms, 0) as entry_ms,
    least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms as exit_ms,
    coalesce(placed and end_ms < $as_of_ms, false) as placed,
    micro_gpus
from member_waiting
where
    start_ms < $as_of_ms
    and coalesce(end_ms > start_ms, true)
    and coalesce(end_ms > $window_start_ms, true)
    and open_until_ms >= $window_start_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    null as entry_ms,
    null as exit_ms,
    false as placed,
    0 as micro_gpus
from seen_before($as_of_ms)
"""


def percentiles(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Percentiles of the waits by GPUs, both estimators; undefined where a pod's GPUs are not known."""
    groups = list(grouped(rows, ask.by)) or [({}, [])]
    waits = [[row for row in members if row["exit_ms"] is not None] for _, members in groups]
    unknown = [any(row["micro_gpus"] is None for row in mine) for mine in waits]
    stays = [[] if lacks else _stays(mine) for mine, lacks in zip(waits, unknown, strict=True)]
    censored = survival_quantiles_of_groups(
        [Stays.of(mine) for mine in stays], QUANTILES, few_below=ask.policy.few_below
    )
    return [
        sample
        for (labels, _), mine, found, lacks in zip(groups, stays, censored, unknown, strict=True)
        for sample in _of_group(labels, mine, found, UNKNOWN_SHARE if lacks else "")
    ]


def _stays(waits: Sequence[Row]) -> list[Stay]:
    """Those of pods with GPUs, weighed by them."""
    return [
        Stay(
            whole(row, "entry_ms"),
            whole(row, "exit_ms"),
            bool(row["placed"]),
            weight=whole(row, "micro_gpus"),
        )
        for row in waits
        if row["micro_gpus"]
    ]


def gpu_hours(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-hours for which pods waited in the window; a lower bound where a pod's GPUs are not known."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        waits = [row for row in members if row["exit_ms"] is not None]
        known = [row for row in waits if row["micro_gpus"] is not None]
        amount = sum(
            whole(row, "micro_gpus") * (whole(row, "exit_ms") - whole(row, "entry_ms")) for row in known
        )
        hours = amount / MICRO_PER_GPU / MS_PER_HOUR
        samples.append(Sample(labels=labels, value=hours, lower_bound=len(known) < len(waits)))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def _of_group(
    labels: dict[str, str], stays: Sequence[Stay], censored: Sequence[Quantile] | None, because: str
) -> list[Sample]:
    """The samples of one group; `because`: why nothing can be said of it."""
    placed = sorted((stay for stay in stays if stay.placed), key=lambda each: each.exit_ms)
    reached = list(accumulate(stay.weight for stay in placed))
    samples = []
    for place, quantile in enumerate(QUANTILES):
        named = {**labels, "quantile": str(quantile)}
        started = _started(placed, reached, quantile)
        samples += [
            _sample({**named, "estimator": "started"}, started, because or NO_END),
            _sample(
                {**named, "estimator": "censored"}, censored[place] if censored else None, because or NO_WAIT
            ),
        ]
    return samples


def _started(placed: Sequence[Stay], reached: Sequence[int], quantile: float) -> Quantile | None:
    """The smallest wait by which that share of the GPUs was placed; `reached`: how many by each wait."""
    if not placed:
        return None
    wanted = Fraction(str(quantile)) * reached[-1]
    return Quantile(value_ms=placed[bisect_left(reached, wanted)].exit_ms)


def _sample(labels: dict[str, str], quantile: Quantile | None, because: str) -> Sample:
    if quantile is None:
        return Sample.undefined(labels, because)
    value = quantile.value_ms / MS_PER_SECOND
    return Sample(labels=labels, value=value, lower_bound=quantile.lower_bound, few=quantile.few)
