"""The rows behind the interactive rules: stretches of nodes and of pods on them, pool by pool."""

from collections.abc import Callable, Sequence
from typing import Final

import polars as pl

from analytics.evaluate import NOTHING_OBSERVED, grouped
from domain.metric import Ask, Compute, FrameCompute, Row, Sample

POOL = ("cluster", "gpu_model")
# Quantities that may be unknown.
_KNOWN: Final = ("micro_gpus", "allocatable")

STRETCHES = """\
-- One row per stretch of a node with GPUs ('node'), and of a pod on one ('held'), that touches the window.
select
    'node' as what,
    cluster,
    gpu_model,
    node,
    allocatable_micro_gpus as allocatable,
    schedulable,
    0 as micro_gpus,
    '' as service_class,
    '' as user_name,
    start_ms,
    end_ms
from node_capacity
where
    start_ms < $as_of_ms
    and coalesce(end_ms > $window_start_ms, true)
    and coalesce(capacity_micro_gpus, allocatable_micro_gpus, 1) > 0
union all
select
    'held' as what,
    cluster,
    gpu_model,
    node,
    0 as allocatable,
    false as schedulable,
    micro_gpus,
    service_class,
    user_name,
    bound_ms as start_ms,
    released_ms as end_ms
from class_holding
where
    bound_ms < $as_of_ms
    and coalesce(released_ms > $window_start_ms, true)
    and open_until_ms >= $window_start_ms
"""

NOW = """\
-- One row per node with GPUs just before $as_of_ms ('node'), per pod on one ('held'), and per pool and
-- interactive user who waits ('waiting').
with standing as (
    select * from node_capacity
    where
        start_ms < $as_of_ms
        and coalesce(end_ms >= $as_of_ms, true)
        and coalesce(capacity_micro_gpus, allocatable_micro_gpus, 1) > 0
)

select
    'node' as what,
    cluster,
    gpu_model,
    node,
    allocatable_micro_gpus as allocatable,
    schedulable,
    0 as micro_gpus,
    '' as service_class,
    '' as user_name
from standing
union all
select
    'held' as what,
    cluster,
    gpu_model,
    node,
    0 as allocatable,
    false as schedulable,
    micro_gpus,
    service_class,
    user_name
from class_holding
where bound_ms < $as_of_ms and coalesce(released_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
union all
select distinct
    'waiting' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    0 as allocatable,
    false as schedulable,
    0 as micro_gpus,
    workload_span.service_class,
    workload_span.user_name
from workload_span
inner join (select distinct cluster, gpu_model from standing) as pool
    on workload_span.cluster = pool.cluster
where
    workload_span.waits
    and workload_span.service_class = 'interactive'
    and workload_span.start_ms < $as_of_ms
    and coalesce(workload_span.end_ms >= $as_of_ms, true)
    and workload_span.open_until_ms >= $as_of_ms
"""


def summed_over_pools(value: Callable[[Sequence[Row], Ask], float]) -> Compute:
    """
    A `compute` that sums `value` over pools.

    A pod whose share nobody knows, or a node, makes a lower bound: what is held could be more.
    """

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        return _summed(
            [
                {**labels, "value": value(members, ask), "known": all(map(_is_known, members))}
                for labels, members in grouped(rows, POOL)
            ],
            ask,
        )

    return compute


def stretches_summed_over_pools(value: Callable[[pl.DataFrame, Ask], float]) -> FrameCompute:
    """The same of stretches as a frame: of a day there are as many as pods ran."""

    def compute(stretches: pl.DataFrame, ask: Ask) -> list[Sample]:
        if stretches.is_empty():
            return _summed([], ask)
        return _summed(
            [
                {
                    **dict(zip(POOL, map(str, key), strict=True)),
                    "value": value(members, ask),
                    "known": not any(members[name].null_count() for name in _KNOWN),
                }
                for key, members in stretches.group_by(POOL, maintain_order=True)
                if None not in key
            ],
            ask,
        )

    return compute


def _summed(by_pool: Sequence[Row], ask: Ask) -> list[Sample]:
    return [
        Sample(
            labels=labels,
            value=sum(float(str(pool["value"])) for pool in pools),
            lower_bound=not all(pool["known"] for pool in pools),
        )
        for labels, pools in grouped(by_pool, ask.by)
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


def _is_known(row: Row) -> bool:
    return all(row[name] is not None for name in _KNOWN)
