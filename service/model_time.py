"""Held time as money looks at it: of the model that its node had then, which a label may tell late."""

from typing import Final

# To follow `with`. `modelled` has the rows of `gpu_time`, each of the model that its pod was bound to. Where
# the node was of another model later, that much is taken off and stands under the model that the node had: so
# sums by model are those of the statement. `told_ms` is when the cause of the whole row was known.
MODELLED: Final = """
relabelled as (
    select cluster, node
    from node_capacity
    group by cluster, node
    having count(distinct gpu_model) > 1
),

labelled as (
    select node_capacity.*
    from node_capacity
    inner join relabelled
        on node_capacity.cluster = relabelled.cluster and node_capacity.node = relabelled.node
    where node_capacity.capacity_micro_gpus is null or node_capacity.capacity_micro_gpus > 0
),

elsewhere as (
    select
        gpu_time.* replace (
            greatest(gpu_time.start_ms, labelled.start_ms) as start_ms,
            least(gpu_time.end_ms, labelled.end_ms) as end_ms
        ),
        coalesce(gpu_time.known_ms, gpu_time.end_ms) as told_ms,
        labelled.gpu_model as then_model
    from gpu_time
    inner join labelled
        on gpu_time.cluster = labelled.cluster
        and gpu_time.node = labelled.node
        and gpu_time.gpu_model <> labelled.gpu_model
        and coalesce(gpu_time.start_ms < labelled.end_ms, true)
        and coalesce(gpu_time.end_ms > labelled.start_ms, true)
),

modelled as (
    select gpu_time.*, coalesce(known_ms, end_ms) as told_ms from gpu_time
    union all by name
    select elsewhere.* exclude (then_model) replace (-micro_gpus as micro_gpus) from elsewhere
    union all by name
    select elsewhere.* exclude (then_model) replace (then_model as gpu_model) from elsewhere
)"""
