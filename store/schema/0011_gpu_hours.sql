-- Pieces of samples summed up by hour, and what questions ask of both.

-- noqa: disable=LT02,RF03,ST03
-- (A macro's body stands at the margin, as a view's does; its parameters look like columns, and a table
-- that is passed on by its name looks unused.)

-- One row per device, pod on it and hour, of what stands in [from_ms, to_ms); columns as gpu_hour.
create macro gpu_sum(series_table, part_table, piece_table, from_ms, to_ms) as table
with cut as (
    select
        * exclude (start_ms, end_ms),
        greatest(start_ms, from_ms) as start_ms,
        least(end_ms, to_ms) as end_ms
    from query_table(piece_table)
    where from_ms < to_ms and start_ms < to_ms and end_ms > from_ms
),

hourly as (
    select
        *,
        start_ms // 3600000 * 3600000 as hour_ms,
        least(end_ms, (start_ms // 3600000 + 1) * 3600000) as until_ms
    from cut
    union all
    select
        * replace (end_ms // 3600000 * 3600000 as start_ms),
        end_ms // 3600000 * 3600000 as hour_ms,
        end_ms as until_ms
    from cut
    where end_ms // 3600000 > start_ms // 3600000 and end_ms % 3600000 > 0
),

numbered as (
    select
        series_no,
        part_no,
        hour_ms,
        sum(case when device_activity is not null then micro_gpus * (until_ms - start_ms) end) as seen,
        sum(round(device_activity * micro_gpus * (until_ms - start_ms))::bigint) as active,
        sum(case when own and activity is not null then micro_gpus * (until_ms - start_ms) end) as own_seen,
        sum(case when own then round(activity * micro_gpus * (until_ms - start_ms))::bigint end)
            as own_active,
        sum(case when memory_ratio is not null then micro_gpus * (until_ms - start_ms) end) as memory_seen,
        sum(round(memory_ratio * micro_gpus * (until_ms - start_ms))::bigint) as memory_used
    from hourly
    group by series_no, part_no, hour_ms
),

summed as (
    select
        series.cluster,
        series.node,
        series.device,
        max(series.gpu_model) as gpu_model,
        coalesce(part.pod_uid, '') as pod_uid,
        max(coalesce(part.workload_uid, '')) as workload_uid,
        numbered.hour_ms,
        sum(numbered.seen) as seen,
        sum(numbered.active) as active,
        sum(numbered.own_seen) as own_seen,
        sum(numbered.own_active) as own_active,
        sum(numbered.memory_seen) as memory_seen,
        sum(numbered.memory_used) as memory_used
    from numbered
    inner join query_table(series_table) as series on numbered.series_no = series.series_no
    left join query_table(part_table) as part on numbered.part_no = part.part_no
    group by series.cluster, series.node, series.device, coalesce(part.pod_uid, ''), numbered.hour_ms
),

-- What of a device nobody is known to have held.
rest as (
    select
        cluster,
        node,
        device,
        max(gpu_model) as gpu_model,
        '' as pod_uid,
        '' as workload_uid,
        hour_ms,
        sum(case when pod_uid = '' then seen else -seen end) as seen,
        sum(case when pod_uid = '' then active else -active end) as active,
        0 as own_seen,
        0 as own_active,
        sum(case when pod_uid = '' then memory_seen else -memory_seen end) as memory_seen,
        sum(case when pod_uid = '' then memory_used else -memory_used end) as memory_used
    from summed
    group by cluster, node, device, hour_ms
)

select
    cluster, node, device, gpu_model, pod_uid, workload_uid, hour_ms,
    greatest(coalesce(seen, 0), 0)::bigint as seen,
    greatest(coalesce(active, 0), 0)::bigint as active,
    coalesce(own_seen, 0)::bigint as own_seen,
    coalesce(own_active, 0)::bigint as own_active,
    greatest(coalesce(memory_seen, 0), 0)::bigint as memory_seen,
    greatest(coalesce(memory_used, 0), 0)::bigint as memory_used
from (
    select * from summed
    where pod_uid != ''
    union all
    select * from rest
) as parts
where seen > 0 or memory_seen > 0;

-- One row per device, pod on it and hour, of what was read before known_ms and stands in [from_ms, to_ms);
-- columns as gpu_hour. A reading stands for 45 minutes at most.
create macro gpu_use(from_ms, to_ms, known_ms) as table
with the_series as (
    select * from gpu_series(from_ms - 2700000, known_ms)
),

the_part as (
    select * from gpu_part('the_series')
),

the_reading as (
    select * from gpu_reading('the_series', from_ms - 2700000, known_ms)
),

the_piece as (
    select * from gpu_piece('the_series', 'the_part', 'the_reading')
)

select * from gpu_sum('the_series', 'the_part', 'the_piece', from_ms, to_ms);

-- One row per device and pod on it, of what was read before as_of_ms and stands in [from_ms, as_of_ms);
-- columns as gpu_hour. Whole hours are taken from there, the two ends from the samples; the last whole
-- hours too, because a reading in them may stand until one that comes after as_of_ms.
create macro gpu_seen(from_ms, as_of_ms) as table
with edge as (
    select
        (from_ms + 3599999) // 3600000 * 3600000 as first_ms,
        greatest((as_of_ms // 3600000 - 1) * 3600000, (from_ms + 3599999) // 3600000 * 3600000) as last_ms
),

part as (
    select gpu_hour.*
    from gpu_hour
    cross join edge
    where gpu_hour.hour_ms >= edge.first_ms and gpu_hour.hour_ms < edge.last_ms
    union all
    select *
    from gpu_use(
        from_ms,
        least((from_ms + 3599999) // 3600000 * 3600000, as_of_ms),
        least((from_ms + 3599999) // 3600000 * 3600000 + 2700000, as_of_ms)
    )
    union all
    select *
    from gpu_use(
        greatest((as_of_ms // 3600000 - 1) * 3600000, (from_ms + 3599999) // 3600000 * 3600000),
        as_of_ms,
        as_of_ms
    )
)

select
    cluster, node, device, pod_uid,
    max(gpu_model) as gpu_model,
    max(workload_uid) as workload_uid,
    sum(seen) as seen,
    sum(active) as active,
    sum(own_seen) as own_seen,
    sum(own_active) as own_active,
    sum(memory_seen) as memory_seen,
    sum(memory_used) as memory_used
from part
group by cluster, node, device, pod_uid;
