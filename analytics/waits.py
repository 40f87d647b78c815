"""Percentiles of waits over a window, by both estimators, from rows that metrics share the shape of."""

from collections.abc import Mapping, Sequence

import polars as pl

from analytics.censored import (
    Longs,
    Quantile,
    Stays,
    started_quantiles,
    survival_quantiles,
    survival_quantiles_of_groups,
)
from analytics.confidence import intervals
from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.frames import groups
from domain.metric import Ask, FrameCompute, Row, Sample, Takes
from domain.window import MS_PER_SECOND

QUANTILES = (0.5, 0.9, 0.99)
EXTRA_LABELS = ("quantile", "estimator")
# The columns of a wait seen in a window: `entry_ms` and `exit_ms`, the waiting clock at the window's start
# and at its end; `placed`, whether the wait ended inside the window. Nearly all begin and end inside.
WAIT = Takes(("entry_ms", "exit_ms", "placed"), usual={"entry_ms": 0, "placed": True})
_NO_WAITS = Stays.of(())
_NO_INTERVAL = "no workload waited in the window"
_TOO_FEW = "too few waited in the window to say what is typical"

FIRST_WAITS = """\
-- One row per workload that waited for its first placement in [$window_start_ms, $as_of_ms): its
-- waiting clock at either end of the window, and whether it was placed inside. What came inside and was
-- placed there, or was over without, waited as long as its row says; of all others the spans are added up.
with crossing as materialized (
    select
        cluster,
        workload_uid,
        queue,
        service_class,
        priority_class,
        team,
        gpu_model,
        gang_size,
        first_placed_ms,
        open_until_ms
    from gpu_workload
    where
        submitted_ms < $window_start_ms
        and open_until_ms >= $window_start_ms
        and coalesce(first_placed_ms >= $window_start_ms, true)
    union all
    select
        cluster,
        workload_uid,
        queue,
        service_class,
        priority_class,
        team,
        gpu_model,
        gang_size,
        first_placed_ms,
        open_until_ms
    from gpu_workload
    where
        submitted_ms >= $window_start_ms
        and submitted_ms < $as_of_ms
        and open_until_ms >= $as_of_ms
        and coalesce(first_placed_ms >= $as_of_ms, true)
),

-- Apart from those that go on, so that only spans of about the window's start are looked through for it.
over as materialized (
    select * from crossing
    where open_until_ms < $as_of_ms
),

waited as (
    select cluster, workload_uid, start_ms, coalesce(end_ms, $as_of_ms) as end_ms
    from spans_of('crossing')
    where first_wait and waits and start_ms < $as_of_ms and open_until_ms >= $as_of_ms
    union all
    select cluster, workload_uid, start_ms, end_ms
    from spans_of('over')
    where first_wait and waits and open_until_ms >= $window_start_ms and open_until_ms < $as_of_ms
),

clock as (
    select
        cluster,
        workload_uid,
        sum(greatest(least(end_ms, $window_start_ms) - start_ms, 0))::bigint as entry_ms,
        sum(least(end_ms, $as_of_ms) - start_ms)::bigint as exit_ms
    from waited
    group by cluster, workload_uid
)

select
    cluster,
    workload_uid,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    0 as entry_ms,
    first_wait_ms as exit_ms,
    true as placed
from gpu_workload
where
    submitted_ms >= $window_start_ms
    and submitted_ms < $as_of_ms
    and first_placed_ms >= $window_start_ms
    and first_placed_ms < $as_of_ms
    and open_until_ms >= $window_start_ms
union all
select
    cluster,
    workload_uid,
    queue,
    service_class,
    priority_class,
    team,
    '' as gpu_model,
    gang_size,
    0 as entry_ms,
    first_wait_ms as exit_ms,
    false as placed
from gpu_workload
where
    submitted_ms >= $window_start_ms
    and submitted_ms < $as_of_ms
    and first_placed_ms is null
    and first_wait_ms > 0
    and open_until_ms >= $window_start_ms
    and open_until_ms < $as_of_ms
union all
select
    crossing.cluster,
    crossing.workload_uid,
    crossing.queue,
    crossing.service_class,
    crossing.priority_class,
    crossing.team,
    case when crossing.first_placed_ms < $as_of_ms then crossing.gpu_model else '' end as gpu_model,
    crossing.gang_size,
    coalesce(clock.entry_ms, 0) as entry_ms,
    coalesce(clock.exit_ms, 0) as exit_ms,
    coalesce(crossing.first_placed_ms < $as_of_ms, false) as placed
from crossing
left join clock
    on crossing.cluster = clock.cluster and crossing.workload_uid = clock.workload_uid
where
    coalesce(crossing.first_placed_ms < $as_of_ms, false)
    or coalesce(clock.exit_ms > clock.entry_ms, false)
"""

COMPONENTS = ("quota", "checks", "placing")
WAITED_BY_COMPONENT = """\
-- One row per combination of dimensions: milliseconds that workloads waited in [$window_start_ms,
-- $as_of_ms) for their first placement, by what they waited for; of zeros where none did.
with piece as (
    select
        *,
        least(coalesce(end_ms, $as_of_ms), $as_of_ms) - greatest(start_ms, $window_start_ms) as ms
    from workload_span
    where
        first_wait
        and waits
        and start_ms < $as_of_ms
        and coalesce(end_ms > $window_start_ms, true)
        and open_until_ms >= $window_start_ms
)

select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    sum(case when state = 'queued' then ms else 0 end) as quota_ms,
    sum(case when state = 'checking' then ms else 0 end) as checks_ms,
    sum(case when state = 'placing' then ms else 0 end) as placing_ms
from piece
group by all
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    0 as quota_ms,
    0 as checks_ms,
    0 as placing_ms
from seen_before($as_of_ms)
"""


def components(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Seconds by component of the wait, from rows of `WAITED_BY_COMPONENT`."""
    return [
        Sample(
            labels={**labels, "component": component},
            value=sum(whole(row, f"{component}_ms") for row in members) / MS_PER_SECOND,
        )
        for labels, members in grouped(rows, ask.by)
        for component in COMPONENTS
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


def wait_percentiles(*, no_wait: str, no_end: str) -> FrameCompute:
    """
    The `compute_frame` of a metric over waits, a row for each with the columns of `WAIT`.

    Args:
        no_wait: why there is no censored percentile, where nothing waited.
        no_end: why there is no started percentile, where no wait ended.
    """

    def compute(frame: pl.DataFrame, ask: Ask) -> list[Sample]:
        groups = _by_labels(frame, ask)
        at_risk = [_at_risk(waits) for _, waits in groups]
        censored = survival_quantiles_of_groups(at_risk, QUANTILES, few_below=ask.policy.few_below)
        return [
            sample
            for (labels, waits), found in zip(groups, censored, strict=True)
            for sample in of_group(labels, waits.exit_ms[waits.placed], found)
        ]

    def of_group(labels: Mapping[str, str], ended: Longs, censored: list[Quantile] | None) -> list[Sample]:
        started = started_quantiles(ended, QUANTILES)
        samples = []
        for place, quantile in enumerate(QUANTILES):
            named = {**labels, "quantile": str(quantile)}
            found = Quantile(value_ms=started[place]) if started else None
            samples += [
                _sample({**named, "estimator": "started"}, found, no_end),
                _sample({**named, "estimator": "censored"}, censored[place] if censored else None, no_wait),
            ]
        return samples

    return compute


def typical_wait(frame: pl.DataFrame, ask: Ask) -> list[Sample]:
    """The censored median of each group, where it rests on enough; from rows of the shape above."""
    return [
        Sample.undefined(labels, _NO_INTERVAL if median is None else _TOO_FEW)
        if median is None or median.few
        else _sample(labels, median, "")
        for labels, waits in _by_labels(frame, ask)
        for median in [censored_median(waits, ask)]
    ]


def censored_median(waits: Stays, ask: Ask) -> Quantile | None:
    """The median by the headline estimator; None where nothing waited."""
    found = survival_quantiles(_at_risk(waits), (0.5,), few_below=ask.policy.few_below)
    return found[0] if found else None


def _by_labels(frame: pl.DataFrame, ask: Ask) -> list[tuple[dict[str, str], Stays]]:
    """The waits of each group; where nothing waited, one group without labels."""
    return [
        (labels, Stays(*(columns[name] for name in WAIT.columns)))
        for labels, columns in groups(frame, ask.by, WAIT)
    ] or [({}, _NO_WAITS)]


def _at_risk(waits: Stays) -> Stays:
    """A wait that was over before the window began was never at risk in it."""
    was = (waits.entry_ms < waits.exit_ms) | ((waits.exit_ms == 0) & waits.placed)
    return waits if was.all() else waits.where(was)


def wait_intervals(frame: pl.DataFrame, ask: Ask) -> list[Sample]:
    """The 95 % interval of each censored percentile, from rows as those of `wait_percentiles`."""
    samples = []
    for labels, waits in _by_labels(frame, ask):
        stays = _at_risk(waits)
        found = intervals(stays, QUANTILES)
        few = len(stays) < ask.policy.few_below
        for place, quantile in enumerate(QUANTILES):
            for bound in ("lower", "upper"):
                named = {**labels, "quantile": str(quantile), "bound": bound}
                if found is None:
                    samples.append(Sample.undefined(named, _NO_INTERVAL))
                    continue
                of = found[place]
                at_ms = of.low_ms if bound == "lower" else of.high_ms
                samples.append(
                    Sample(
                        labels=named,
                        value=(of.largest_ms if at_ms is None else at_ms) / MS_PER_SECOND,
                        lower_bound=at_ms is None,
                        few=few,
                    )
                )
    return samples


def _sample(labels: Mapping[str, str], quantile: Quantile | None, because: str) -> Sample:
    if quantile is None:
        return Sample.undefined(labels, because)
    return Sample(
        labels=labels,
        value=quantile.value_ms / MS_PER_SECOND,
        lower_bound=quantile.lower_bound,
        few=quantile.few,
    )


def ended_count(frame: pl.DataFrame, ask: Ask) -> list[Sample]:
    """How many of the waits ended inside the window, from rows of the shape above."""
    samples = [
        Sample(labels=labels, value=int(columns["placed"].sum()))
        for labels, columns in groups(frame, ask.by, WAIT)
    ]
    return samples or [Sample.undefined({}, "no workload waited for its first placement in the window")]


def longest_ended(frame: pl.DataFrame, ask: Ask) -> list[Sample]:
    """The longest of the waits that ended inside the window, from rows of the shape above."""
    return [_longest(labels, waits) for labels, waits in _by_labels(frame, ask)]


def _longest(labels: Mapping[str, str], waits: Stays) -> Sample:
    if not waits.placed.any():
        return Sample.undefined(labels, "no workload was first placed in the window")
    return Sample(labels=labels, value=int(waits.exit_ms[waits.placed].max()) / MS_PER_SECOND)
