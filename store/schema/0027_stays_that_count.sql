-- Stays of pods that may have samples of a time, and what was on a node when it went.

-- One row per stay of a pod on its node, with the name by which a device's series call it.
create or replace view pod_stay as
select
    holding.cluster,
    holding.workload_uid,
    holding.pod_uid,
    holding.node,
    workload.namespace,
    holding.pod_name,
    holding.micro_gpus,
    holding.bound_ms,
    holding.released_ms,
    holding.open_until_ms
from holding
inner join workload
    on holding.cluster = workload.cluster
    and holding.workload_uid = workload.workload_uid
    and holding.open_until_ms = workload.open_until_ms
where holding.micro_gpus is null or holding.micro_gpus > 0;

-- noqa: disable=LT02,RF03,ST03
-- (A macro's body stands at the margin, as a view's does; its parameters look like columns, and a table
-- that is passed on by its name looks unused.)

-- One row per series and stay of a pod that it may be of since from_ms; micro_gpus is the pod's share of the
-- device.
create or replace macro gpu_part(series_table, from_ms) as table
with held as (
    select
        series.series_no,
        series.device_no,
        series.micro_gpus as device_micro_gpus,
        series.shares,
        series.per_process,
        pod_stay.workload_uid,
        pod_stay.pod_uid,
        pod_stay.bound_ms,
        pod_stay.released_ms,
        case
            when pod_stay.micro_gpus is null then series.micro_gpus
            when series.pod_shares > 0 and series.device not like '%/%'
                then least(
                    series.micro_gpus, pod_stay.micro_gpus * series.shares // series.pod_shares
                )
            else least(series.micro_gpus, pod_stay.micro_gpus)
        end as micro_gpus
    from query_table(series_table) as series
    inner join pod_stay
        on series.cluster = pod_stay.cluster
        and series.node = pod_stay.node
        and series.namespace = pod_stay.namespace
        and series.pod = pod_stay.pod_name
        and (series.pod_uid = '' or series.pod_uid = pod_stay.pod_uid)
    where
        series.pod != ''
        and pod_stay.open_until_ms >= from_ms
        and (pod_stay.released_ms is null or pod_stay.bound_ms < pod_stay.released_ms)
)

select
    *,
    row_number() over (
        order by series_no, workload_uid, pod_uid, bound_ms, released_ms, micro_gpus
    )::integer as part_no,
    dense_rank() over (order by pod_uid)::integer as pod_no
from held
where micro_gpus is not null;

-- One row per device, pod on it and hour, of what was read before known_ms and stands in [from_ms, to_ms);
-- columns as gpu_hour. A reading stands for 45 minutes at most.
create or replace macro gpu_use(from_ms, to_ms, known_ms) as table
with the_series as (
    select * from gpu_series(from_ms - 2700000, known_ms)
),

the_part as (
    select * from gpu_part('the_series', from_ms - 2700000)
),

the_reading as (
    select * from gpu_reading('the_series', from_ms - 2700000, known_ms)
),

the_piece as (
    select * from gpu_piece('the_series', 'the_part', 'the_reading')
)

select * from gpu_sum('the_series', 'the_part', 'the_piece', from_ms, to_ms);

-- noqa: enable=all

-- One row per node and change: joined, or went. Nodes that were there when the first of their cluster were
-- read did not join.
create or replace view node_change as
with ordered as (
    select
        *,
        min(start_ms) over (partition by cluster) as first_ms,
        lag(end_ms) over (partition by cluster, node order by start_ms) as before_ms,
        lead(start_ms) over (partition by cluster, node order by start_ms) as next_ms
    from node_span
)

select cluster, node, gpu_model, 'joined' as change, start_ms as at_ms
from ordered
where start_ms > first_ms and coalesce(before_ms < start_ms, true)
union all
select cluster, node, gpu_model, 'left' as change, end_ms as at_ms
from ordered
where end_ms is not null and coalesce(next_ms > end_ms, true);

-- One row per pod that was on a node, whether it held GPUs or not.
create view pod_on_node as
select cluster, node, bound_ms, released_ms, open_until_ms
from holding;
