"""GPUs that could be given out now."""

from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="free_gpus",
    unit=Unit.GPUS,
    title="GPUs free",
    definition=(
        "Allocatable GPUs that no pod holds, summed over nodes; never negative, and 0 on a node that is"
        " cordoned or not ready. A node on which a share cannot be known adds 0 and makes a lower bound."
    ),
    source="Kubernetes node allocatable less requests of bound, non-terminal pods",
    sql="""\
-- One row per node with GPUs just before $as_of_ms; value is null where what it holds is not known.
with held as (
    select
        cluster,
        node,
        sum(micro_gpus) as micro_gpus,
        count(*) - count(micro_gpus) as unknown
    from node_holding
    where bound_ms < $as_of_ms and coalesce(released_ms >= $as_of_ms, true)
    group by cluster, node
)

select
    node_capacity.cluster,
    node_capacity.gpu_model,
    node_capacity.node,
    case
        when not node_capacity.schedulable then 0
        when held.unknown > 0 or node_capacity.allocatable_micro_gpus is null then null
        else greatest(node_capacity.allocatable_micro_gpus - coalesce(held.micro_gpus, 0), 0)
    end as value
from node_capacity
left join held
    on node_capacity.cluster = held.cluster and node_capacity.node = held.node
where
    node_capacity.start_ms < $as_of_ms
    and coalesce(node_capacity.end_ms >= $as_of_ms, true)
    and coalesce(node_capacity.capacity_micro_gpus, node_capacity.allocatable_micro_gpus, 1) > 0
""",
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model", "node"),
    pages=(Page.HOME, Page.QUEUES),
)
