"""Nodes with GPUs at an instant, and what of them cannot be given out."""

# Dimensions and labels of figures about nodes; a node is never a label of an exported series.
DIMENSIONS = ("cluster", "gpu_model", "node")
LABELS = ("cluster", "gpu_model")

# A column for each metric, so that all are read at once. An unknown share makes null, which `greatest` would
# hide. `spare` is what nobody holds. Each pod's share is rounded down, so that less than one micro-GPU per
# pod is no room but what rounding left of cards that are full.
NODES_NOW = """\
-- One row per node with GPUs just before $as_of_ms.
with held as (
    select
        cluster,
        node,
        sum(micro_gpus) as micro_gpus,
        count(*) as pods,
        count(*) - count(micro_gpus) as unknown
    from node_holding
    where
        bound_ms < $as_of_ms and coalesce(released_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
    group by cluster, node
),

node_now as (
    select
        node_capacity.cluster,
        node_capacity.gpu_model,
        node_capacity.node,
        node_capacity.schedulable,
        node_capacity.capacity_micro_gpus as capacity,
        node_capacity.allocatable_micro_gpus as allocatable,
        node_capacity.unpartitioned_micro_gpus as unpartitioned,
        case when coalesce(held.unknown, 0) > 0 then null else coalesce(held.micro_gpus, 0) end as held,
        case
            when held.unknown > 0 then null
            when node_capacity.allocatable_micro_gpus - held.micro_gpus <= held.pods then 0
            else node_capacity.allocatable_micro_gpus - coalesce(held.micro_gpus, 0)
        end as spare
    from node_capacity
    left join held
        on node_capacity.cluster = held.cluster and node_capacity.node = held.node
    where
        node_capacity.start_ms < $as_of_ms
        and coalesce(node_capacity.end_ms >= $as_of_ms, true)
        and coalesce(node_capacity.capacity_micro_gpus, node_capacity.allocatable_micro_gpus, 1) > 0
)

select
    cluster,
    gpu_model,
    node,
    capacity,
    unpartitioned,
    case when schedulable then spare else 0 end as free,
    case when schedulable then 0 else spare end as cordoned,
    case
        when capacity - unpartitioned > allocatable then capacity - unpartitioned - allocatable
        when capacity - unpartitioned <= allocatable then 0
    end as unhealthy,
    case
        when held > allocatable then held - allocatable
        when held <= allocatable then 0
    end as overcommitted
from node_now
"""
