"""
How fast nodes come and go, and what work went with those that were lost.

Definitions leave open when a node is lost and not just gone: here when pods still held GPUs of it as it
went, or no longer told of themselves afterwards. A node's kind of capacity is what its labels say.
"""

from collections.abc import Sequence
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from domain.metric import Ask, Row, Sample
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR

CHANGES: Final = ("joined", "left", "lost")
# As the view `node_kind` has them.
CAPACITY_TYPES: Final = ("regular", "spot")
DIMENSIONS: Final = ("cluster", "gpu_model", "node", "capacity_type")
_DAY_MS: Final = 24 * MS_PER_HOUR

COME_AND_GONE: Final = """\
-- One row per node that came or went in [$window_start_ms, $as_of_ms), and one of no change per node known.
select
    node_change.cluster,
    node_change.gpu_model,
    node_change.node,
    node_kind.capacity_type,
    case
        when node_change.change = 'left' and last_pod.node is not null then 'lost' else node_change.change
    end as change
from node_change
inner join node_kind
    on node_change.cluster = node_kind.cluster
    and node_change.node = node_kind.node
    and node_change.gpu_model = node_kind.gpu_model
-- A pod that was still there as the node went.
left join (
    select distinct went.cluster, went.node, went.at_ms
    from node_change as went
    inner join pod_on_node
        on went.cluster = pod_on_node.cluster
        and went.node = pod_on_node.node
        and went.at_ms > pod_on_node.bound_ms
        and went.at_ms <= coalesce(pod_on_node.released_ms, 9223372036854775807)
    where
        went.at_ms >= $window_start_ms
        and went.at_ms < $as_of_ms
        and pod_on_node.open_until_ms >= $window_start_ms
) as last_pod
    on node_change.cluster = last_pod.cluster
    and node_change.node = last_pod.node
    and node_change.at_ms = last_pod.at_ms
where node_change.at_ms >= $window_start_ms and node_change.at_ms < $as_of_ms
union all
select cluster, gpu_model, node, capacity_type, '' as change
from node_kind
where start_ms < $as_of_ms
"""

LOST_WITH_NODES: Final = """\
-- One row per node, with the running GPU-time in [$window_start_ms, $as_of_ms) that was surely lost to
-- infrastructure on it, as known at $as_of_ms, micro-GPU times milliseconds; unmeasured: pieces of pods whose
-- GPUs are not known.
with known_node as (
    select cluster, node, gpu_model, capacity_type
    from node_kind
    where start_ms < $as_of_ms
),

lost as (
    select
        cluster,
        node,
        gpu_model,
        coalesce(
            sum(
                micro_gpus::hugeint
                * (least(coalesce(end_ms, $as_of_ms), $as_of_ms) - greatest(start_ms, $window_start_ms))
            ),
            0
        ) as amount,
        count(*) - count(micro_gpus) as unmeasured
    from gpu_time
    where
        cause = 'infra_lost'
        and coalesce(known_ms <= $as_of_ms, true)
        and start_ms < $as_of_ms
        and (end_ms > $window_start_ms or end_ms is null)
        and open_until_ms >= $window_start_ms
    group by cluster, node, gpu_model
)

select
    known_node.cluster,
    known_node.gpu_model,
    known_node.node,
    known_node.capacity_type,
    coalesce(lost.amount, 0) as amount,
    coalesce(lost.unmeasured, 0) as unmeasured
from known_node
left join lost
    on known_node.cluster = lost.cluster
    and known_node.node = lost.node
    and known_node.gpu_model = lost.gpu_model
"""


def per_day(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Nodes per day by change; 0 where nodes are known and none of them did so."""
    days = (ask.window.end_ms - ask.window.start_ms) / _DAY_MS
    return [
        Sample(
            labels={**labels, "change": change}, value=sum(row["change"] == change for row in members) / days
        )
        for labels, members in grouped(rows, ask.by)
        for change in CHANGES
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


def lost_hours(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-hours of work lost on nodes; a lower bound where the GPUs of a pod are not known."""
    return [
        Sample(
            labels=labels,
            value=sum(whole(row, "amount") for row in members) / MICRO_PER_GPU / MS_PER_HOUR,
            lower_bound=any(whole(row, "unmeasured") for row in members),
        )
        for labels, members in grouped(rows, ask.by)
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]
