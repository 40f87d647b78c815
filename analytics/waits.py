"""Percentiles of waits over a window, by both estimators, from rows that metrics share the shape of."""

from collections.abc import Iterable, Mapping, Sequence

from analytics.censored import Quantile, Stay, started_quantile, survival_quantiles
from analytics.confidence import intervals
from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from domain.metric import Ask, Compute, Row, Sample
from domain.window import MS_PER_SECOND

QUANTILES = (0.5, 0.9, 0.99)
EXTRA_LABELS = ("quantile", "estimator")
_NO_INTERVAL = "no workload waited in the window"

FIRST_WAITS = """\
-- One row per workload that waited for its first placement in [$window_start_ms, $as_of_ms): its
-- waiting clock at either end of the window, and whether it was placed inside.
with clock as (
    select
        cluster,
        workload_uid,
        sum(greatest(least(coalesce(end_ms, $as_of_ms), $window_start_ms) - start_ms, 0)) as entry_ms,
        sum(least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms) as exit_ms
    from workload_span
    where first_wait and waits and start_ms < $as_of_ms
    group by cluster, workload_uid
)

select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.queue,
    gpu_workload.service_class,
    gpu_workload.priority_class,
    gpu_workload.team,
    case when gpu_workload.first_placed_ms < $as_of_ms then gpu_workload.gpu_model else '' end as gpu_model,
    gpu_workload.gang_size,
    coalesce(clock.entry_ms, 0) as entry_ms,
    coalesce(clock.exit_ms, 0) as exit_ms,
    coalesce(gpu_workload.first_placed_ms < $as_of_ms, false) as placed
from gpu_workload
left join clock
    on gpu_workload.cluster = clock.cluster and gpu_workload.workload_uid = clock.workload_uid
where
    gpu_workload.submitted_ms < $as_of_ms
    and coalesce(gpu_workload.first_placed_ms >= $window_start_ms, true)
    and (
        coalesce(gpu_workload.first_placed_ms < $as_of_ms, false)
        or coalesce(clock.exit_ms > clock.entry_ms, false)
    )
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
        first_wait and waits and start_ms < $as_of_ms and coalesce(end_ms > $window_start_ms, true)
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
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    0 as quota_ms,
    0 as checks_ms,
    0 as placing_ms
from gpu_workload
where submitted_ms < $as_of_ms
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


def wait_percentiles(*, no_wait: str, no_end: str) -> Compute:
    """
    The `compute` of a metric over waits.

    Its rows: one per wait seen in the window; `entry_ms` and `exit_ms`, the waiting clock at the
    window's start and at its end; `placed`, whether the wait ended inside the window.

    Args:
        no_wait: why there is no censored percentile, where nothing waited.
        no_end: why there is no started percentile, where no wait ended.
    """

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        groups = list(grouped(rows, ask.by)) or [({}, [])]
        return [sample for labels, members in groups for sample in _of_group(labels, members, ask)]

    def _of_group(labels: Mapping[str, str], members: Sequence[Row], ask: Ask) -> list[Sample]:
        waits = [(whole(row, "entry_ms"), whole(row, "exit_ms"), bool(row["placed"])) for row in members]
        ended = [exit_ms for _, exit_ms, placed in waits if placed]
        stays = _at_risk(waits)
        censored = survival_quantiles(stays, QUANTILES, few_below=ask.policy.few_below)
        samples = []
        for place, quantile in enumerate(QUANTILES):
            named = {**labels, "quantile": str(quantile)}
            started = started_quantile(ended, quantile)
            found = Quantile(value_ms=started) if started is not None else None
            samples += [
                _sample({**named, "estimator": "started"}, found, no_end),
                _sample({**named, "estimator": "censored"}, censored[place] if censored else None, no_wait),
            ]
        return samples

    return compute


def _at_risk(waits: Iterable[tuple[int, int, bool]]) -> list[Stay]:
    """A wait that was over before the window began was never at risk in it."""
    return [Stay(*wait) for wait in waits if wait[0] < wait[1] or (wait[1] == 0 and wait[2])]


def wait_intervals(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The 95 % interval of each censored percentile, from rows as those of `wait_percentiles`."""
    samples = []
    for labels, members in list(grouped(rows, ask.by)) or [({}, [])]:
        waits = ((whole(row, "entry_ms"), whole(row, "exit_ms"), bool(row["placed"])) for row in members)
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


def ended_count(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """How many of the waits ended inside the window, from rows of the shape above."""
    samples = [
        Sample(labels=labels, value=sum(bool(row["placed"]) for row in members))
        for labels, members in grouped(rows, ask.by)
    ]
    return samples or [Sample.undefined({}, "no workload waited for its first placement in the window")]


def longest_ended(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The longest of the waits that ended inside the window, from rows of the shape above."""
    groups = list(grouped(rows, ask.by)) or [({}, [])]
    return [_longest(labels, [row for row in members if row["placed"]]) for labels, members in groups]


def _longest(labels: Mapping[str, str], placed: Sequence[Row]) -> Sample:
    if not placed:
        return Sample.undefined(labels, "no workload was first placed in the window")
    longest_ms = max(whole(row, "exit_ms") for row in placed)
    return Sample(labels=labels, value=longest_ms / MS_PER_SECOND)
