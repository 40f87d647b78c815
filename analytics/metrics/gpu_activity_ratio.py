"""How busy GPUs were."""

from analytics.activity.ratio import utilisation
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="gpu_activity_ratio",
    unit=Unit.RATIO,
    title="GPU utilisation",
    definition=(
        "Activity of GPUs, averaged over the time in the window for which it was read, each device weighted"
        " by its part of a card; time that nobody read is left out. But GPUs that no pod holds, and of which"
        " sources that tell of their node say nothing, count as not active and make a lower bound: else a"
        " node would seem as busy as the GPUs that are held. Apart by team, queue or class: of the GPUs that"
        " its pods held, without shared GPUs on which nobody knows whose the activity is."
    ),
    source="DCGM_FI_PROF_GR_ENGINE_ACTIVE, else DCGM_FI_DEV_GPU_UTIL / 100, of dcgm-exporter",
    sql="""\
-- One row per device and pod on it in the window; the part that no pod held has no workload's labels. And one
-- per node whose free GPUs sources left out (is_missing): they tell of it, but not of GPUs that nobody holds.
with seen as (
    select * from gpu_seen($window_start_ms, $as_of_ms)
),

model as (
    select
        cluster,
        node,
        arg_max(gpu_model, start_ms) as gpu_model
    from node_capacity
    where start_ms < $as_of_ms
    group by cluster, node
),

-- From the first reading of the cluster in the window to the last one.
reading as (
    select
        cluster,
        greatest(min(start_ms), $window_start_ms) as first_ms,
        least(max(end_ms), $as_of_ms) as last_ms
    from read_node
    where start_ms < $as_of_ms and end_ms > $window_start_ms
    group by cluster
),

known as (
    select distinct cluster, node
    from read_node
    where start_ms < $as_of_ms
),

there as (
    select
        node_capacity.cluster,
        node_capacity.node,
        sum(
            (node_capacity.capacity_micro_gpus - node_capacity.unpartitioned_micro_gpus)::hugeint
            * (
                least(coalesce(node_capacity.end_ms, reading.last_ms), reading.last_ms)
                - greatest(node_capacity.start_ms, reading.first_ms)
            )
        ) as amount
    from node_capacity
    inner join known
        on node_capacity.cluster = known.cluster and node_capacity.node = known.node
    inner join reading on node_capacity.cluster = reading.cluster
    where
        node_capacity.start_ms < reading.last_ms
        and coalesce(node_capacity.end_ms > reading.first_ms, true)
        and node_capacity.capacity_micro_gpus is not null
    group by node_capacity.cluster, node_capacity.node
),

held as (
    select
        node_holding.cluster,
        node_holding.node,
        sum(
            coalesce(node_holding.micro_gpus, 0)::hugeint
            * (
                least(coalesce(node_holding.released_ms, reading.last_ms), reading.last_ms)
                - greatest(node_holding.bound_ms, reading.first_ms)
            )
        ) as amount
    from node_holding
    inner join reading on node_holding.cluster = reading.cluster
    where
        node_holding.bound_ms < reading.last_ms
        and coalesce(node_holding.released_ms > reading.first_ms, true)
        and node_holding.open_until_ms >= $window_start_ms
    group by node_holding.cluster, node_holding.node
),

read as (
    select
        cluster,
        node,
        sum(seen) as amount,
        sum(case when pod_uid = '' then seen else 0 end) as free
    from seen
    group by cluster, node
),

left_out as (
    select
        there.cluster,
        there.node,
        there.amount as there,
        least(
            there.amount - coalesce(read.amount, 0),
            there.amount - coalesce(held.amount, 0) - coalesce(read.free, 0)
        ) as amount
    from there
    left join held
        on there.cluster = held.cluster and there.node = held.node
    left join read
        on there.cluster = read.cluster and there.node = read.node
)

select
    seen.cluster,
    gpu_work.queue,
    gpu_work.service_class,
    gpu_work.priority_class,
    gpu_work.team,
    coalesce(nullif(model.gpu_model, ''), seen.gpu_model) as gpu_model,
    gpu_work.gang_size,
    seen.node,
    seen.device,
    seen.seen,
    seen.active,
    seen.own_seen,
    seen.own_active,
    false as is_missing
from seen
left join gpu_work
    on seen.cluster = gpu_work.cluster
    and seen.workload_uid = gpu_work.workload_uid
    and gpu_work.open_until_ms >= $window_start_ms
left join model
    on seen.cluster = model.cluster and seen.node = model.node
union all
-- What is less than a hundredth of the node lies at the ends of readings.
select
    left_out.cluster,
    null as queue,
    null as service_class,
    null as priority_class,
    null as team,
    model.gpu_model,
    null as gang_size,
    left_out.node,
    null as device,
    left_out.amount as seen,
    0 as active,
    0 as own_seen,
    0 as own_active,
    true as is_missing
from left_out
inner join model
    on left_out.cluster = model.cluster and left_out.node = model.node
where left_out.amount * 100 > left_out.there
order by cluster, node, device
""",
    labels=("cluster", "gpu_model", "team"),
    dimensions=(*DIMENSIONS, "node", "device"),
    compute=utilisation,
    windowed=True,
    pages=(Page.CLUSTER,),
    low_is_bad=True,
    rests_on_samples=True,
)
