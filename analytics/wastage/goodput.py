"""Goodput as its metric asks for it: useful GPU-time and capacity, side by side."""

from collections.abc import Sequence
from typing import Final

from analytics.evaluate import grouped, whole
from analytics.wastage.asked import bill_of, sample
from analytics.wastage.ratios import goodput
from domain.metric import Ask, Row, Sample

# In the place of a cause: all that pods held, which is known from them. What it was for, only once it is
# accounted.
HELD: Final = "held"

# All parts of the capacity are made of the same rows, so that they are read once.
USE_AND_CAPACITY: Final = f"""\
-- One row per node, model and cause of GPU-time held in the window, as known at $as_of_ms, and one for all
-- that was held; and one per stretch of a node's capacity, whose cause is null. Micro-GPU times milliseconds.
with piece as (
    select
        *,
        least(coalesce(end_ms, $as_of_ms), $as_of_ms) - greatest(start_ms, $window_start_ms) as ms,
        case when coalesce(known_ms <= $as_of_ms, true) then cause else earlier_cause end as told_cause
    from gpu_time
    where
        start_ms < $as_of_ms
        and (end_ms > $window_start_ms or end_ms is null)
        and open_until_ms >= $window_start_ms
)

select
    cluster,
    gpu_model,
    node,
    told_cause as cause,
    '' as may_be,
    true as charged,
    false as restart,
    coalesce(sum(micro_gpus::hugeint * ms), 0) as amount,
    coalesce(sum(ms) filter (where micro_gpus is null), 0) as unmeasured_ms
from piece
group by cluster, gpu_model, node, told_cause
union all
select
    cluster,
    gpu_model,
    node,
    null as cause,
    '' as may_be,
    true as charged,
    false as restart,
    capacity_micro_gpus::hugeint
    * (least(coalesce(end_ms, $as_of_ms), $as_of_ms) - greatest(start_ms, $window_start_ms)) as amount,
    0 as unmeasured_ms
from node_capacity
where
    start_ms < $as_of_ms
    and coalesce(end_ms > $window_start_ms, true)
    and coalesce(capacity_micro_gpus, allocatable_micro_gpus, 1) > 0
union all
select
    cluster,
    gpu_model,
    node,
    '{HELD}' as cause,
    '' as may_be,
    true as charged,
    false as restart,
    coalesce(sum(
        micro_gpus::hugeint
        * (least(coalesce(released_ms, $as_of_ms), $as_of_ms) - greatest(bound_ms, $window_start_ms))
    ), 0) as amount,
    count(*) - count(micro_gpus) as unmeasured_ms
from gpu_holding
where
    bound_ms < $as_of_ms
    and coalesce(released_ms > $window_start_ms, true)
    and open_until_ms >= $window_start_ms
group by cluster, gpu_model, node
"""  # noqa: S608 (put together of constants)


def goodput_ratio(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Useful over capacity, of each group; undefined where the capacity of a node is unknown."""
    samples = []
    accounted = [row for row in rows if row["cause"] != HELD]
    for labels, members in grouped(accounted, ask.by):
        there = [row for row in members if row["cause"] is None]
        unknown = any(row["amount"] is None for row in there)
        capacity = None if unknown else sum(whole(row, "amount") for row in there)
        bill = bill_of(row for row in members if row["cause"] is not None)
        samples.append(sample(labels, goodput(bill, capacity)))
    return samples or [Sample.undefined({}, "there was no capacity in the window")]
