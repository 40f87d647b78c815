"""How far GPU metrics lag behind, node by node: the rows, the worst of them, and how many are late."""

from collections.abc import Sequence
from typing import Final

from analytics.evaluate import grouped, whole
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_SECOND

NOTHING_READ: Final = "no GPU metrics of a cluster with GPUs are read"

NODE_LAGS: Final = """\
-- One row per node with GPUs that is there just before $as_of_ms, where GPU metrics are read: for how long
-- nothing is known of it (lag_ms), since its last reading or, where there was none, since it came; and
-- whether there ever was one (has_told).
with stay as (
    select
        cluster,
        node,
        max(start_ms) as came_ms
    from (
        select
            cluster,
            node,
            start_ms,
            coalesce(
                start_ms > max(coalesce(end_ms, start_ms)) over (
                    partition by cluster, node order by start_ms
                    rows between unbounded preceding and 1 preceding
                ),
                true
            ) as comes
        from node_capacity
        where start_ms < $as_of_ms
    ) as capacity
    where comes
    group by cluster, node
),

told as (
    select
        cluster,
        node,
        max(least(end_ms, $as_of_ms)) as told_ms
    from gpu_node_reading
    where start_ms < $as_of_ms
    group by cluster, node
)

select
    node_capacity.cluster,
    node_capacity.gpu_model,
    node_capacity.node,
    $as_of_ms - greatest(stay.came_ms, coalesce(told.told_ms, stay.came_ms)) as lag_ms,
    told.told_ms is not null as has_told
from node_capacity
inner join stay
    on node_capacity.cluster = stay.cluster and node_capacity.node = stay.node
left join told
    on node_capacity.cluster = told.cluster and node_capacity.node = told.node
where
    node_capacity.start_ms < $as_of_ms
    and coalesce(node_capacity.end_ms >= $as_of_ms, true)
    and coalesce(node_capacity.capacity_micro_gpus, node_capacity.allocatable_micro_gpus, 1) > 0
    and node_capacity.cluster in (select cluster from told)
"""
# All that a lag can be asked by: nobody's work is in it.
DIMENSIONS: Final = ("cluster", "gpu_model", "node")


def worst_lag(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The longest time for which nothing is known of a node, seconds; rows of `NODE_LAGS`."""
    return [
        Sample(labels=labels, value=max(whole(row, "lag_ms") for row in members) / MS_PER_SECOND)
        for labels, members in grouped(rows, ask.by)
    ] or [Sample.undefined({}, NOTHING_READ)]


def late_nodes(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """How many nodes are further behind than the policy tolerates; rows of `NODE_LAGS`."""
    tolerated_ms = ask.policy.gpu_source_stale_after.total_seconds() * MS_PER_SECOND
    return [
        Sample(labels=labels, value=sum(whole(row, "lag_ms") > tolerated_ms for row in members))
        for labels, members in grouped(rows, ask.by)
    ] or [Sample.undefined({}, NOTHING_READ)]
