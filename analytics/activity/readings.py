"""Single readings of GPUs: their quantiles, the share that says nothing was done, and how many there are."""

from collections.abc import Sequence
from typing import Final

from analytics.activity.ratio import NOTHING_SEEN
from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from domain.metric import Ask, Row, Sample

QUANTILES: Final = (0.5, 0.9, 0.95, 0.99, 1)
DROPPED: Final = "single readings of the window's beginning are no longer kept: ask for a shorter window"

READINGS: Final = """\
-- One row per device and activity that was read of it in [$window_start_ms, $as_of_ms), with the number of
-- readings. What several sources say of one instant is one reading: the profiling field's before the
-- driver's, of all of the device before that of one process, then the higher. dropped: the window begins
-- before what is kept.
with reading as (
    select
        cluster,
        node,
        device,
        max(gpu_model) as gpu_model,
        coalesce(
            max(case when engine and not per_process then activity end),
            max(case when not per_process then activity end),
            max(activity)
        ) as activity
    from gpu_sample
    where at_ms >= $window_start_ms and at_ms < $as_of_ms and activity is not null
    group by cluster, node, device, at_ms
),

model as (
    select
        cluster,
        node,
        arg_max(gpu_model, start_ms) as gpu_model
    from node_capacity
    where start_ms < $as_of_ms
    group by cluster, node
)

select
    reading.cluster,
    coalesce(nullif(model.gpu_model, ''), reading.gpu_model) as gpu_model,
    reading.node,
    reading.device,
    reading.activity,
    coalesce($window_start_ms < closed_until.until_ms, false) as dropped,
    count(*) as readings
from reading
left join model
    on reading.cluster = model.cluster and reading.node = model.node
left join closed_until
    on reading.cluster = closed_until.cluster
group by
    reading.cluster,
    coalesce(nullif(model.gpu_model, ''), reading.gpu_model),
    reading.node,
    reading.device,
    reading.activity,
    coalesce($window_start_ms < closed_until.until_ms, false)
order by cluster, node, device, activity
"""
# Rows add up by these, and are told apart by those beside the labels of a question.
ADDS: Final = ("readings",)
APART: Final = ("activity", "dropped")
DIMENSIONS: Final = ("cluster", "gpu_model", "node", "device")


def quantiles(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Quantiles of readings by linear interpolation (type 7); each reading counts alike."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        told = sorted((_activity(row), whole(row, "readings")) for row in members)
        count = sum(number for _, number in told)
        for quantile in QUANTILES:
            named = {**labels, "quantile": str(quantile)}
            if any(row["dropped"] for row in members):
                samples.append(Sample.undefined(named, DROPPED))
                continue
            value = weighted_quantile(told, quantile)
            samples.append(Sample(labels=named, value=value, few=count < ask.policy.few_below))
    return samples or [Sample.undefined({}, NOTHING_SEEN if rows else NOTHING_OBSERVED)]


def weighted_quantile(told: Sequence[tuple[float, int]], quantile: float) -> float:
    """
    Quantile with linear interpolation, as SQL's `quantile_cont`, of values that each stand for several.

    Args:
        told: values in order with how often each was read, at least one.
        quantile: from 0 to 1.

    Source: Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996, type 7.

    >>> weighted_quantile([(0.0, 3), (1.0, 1)], 0.5), weighted_quantile([(0.0, 1), (1.0, 1)], 0.25)
    (0.0, 0.25)
    """
    place = (sum(number for _, number in told) - 1) * quantile
    below = int(place)
    low, high = _at(told, below), _at(told, below + 1)
    return low + (high - low) * (place - below)


def inactive(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Readings of no activity at all, over all readings."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        count = sum(whole(row, "readings") for row in members)
        nothing = sum(whole(row, "readings") for row in members if _activity(row) == 0)
        if any(row["dropped"] for row in members):
            samples.append(Sample.undefined(labels, DROPPED))
        else:
            few = count < ask.policy.few_below
            samples.append(Sample(labels=labels, value=nothing / count, few=few))
    return samples or [Sample.undefined({}, NOTHING_SEEN if rows else NOTHING_OBSERVED)]


def counted(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """How many readings there are; at least so many where the first ones are no longer kept."""
    return [
        Sample(
            labels=labels,
            value=sum(whole(row, "readings") for row in members),
            lower_bound=any(bool(row["dropped"]) for row in members),
        )
        for labels, members in grouped(rows, ask.by)
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


def _at(told: Sequence[tuple[float, int]], position: int) -> float:
    """The value at a place from 0 on; the last one beyond the end."""
    passed = 0
    for value, number in told:
        passed += number
        if position < passed:
            return value
    return told[-1][0]


def _activity(row: Row) -> float:
    return float(str(row["activity"]))
