"""Whose owner gave up before it was placed: the rows that the number and the share rest on."""

ADDS = ("value", "workloads")
UNPLACED = """\
-- One row per workload that was not yet placed in some part of [$window_start_ms, $as_of_ms), and waited;
-- value is 1 where it ended there while it waited. Who was placed after a wait did not end so: spans are read
-- of all others only.
with lived as (
    select *
    from gpu_workload
    where
        submitted_ms < $as_of_ms
        and open_until_ms >= $window_start_ms
        and coalesce(first_placed_ms >= $window_start_ms, true)
        and coalesce(ended_ms >= $window_start_ms, true)
),

unclear as materialized (
    select * from lived
    where coalesce(first_placed_ms >= $as_of_ms or first_wait_ms = 0, true)
),

clock as (
    select
        cluster,
        workload_uid,
        max(case when waits then start_ms end) as waiting_ms,
        max(case when state = 'held' then start_ms end) as held_ms
    from spans_of('unclear')
    where start_ms < $as_of_ms and open_until_ms >= $window_start_ms
    group by cluster, workload_uid
)

select
    cluster,
    workload_uid,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    0 as value,
    1 as workloads
from lived
where first_placed_ms < $as_of_ms and first_wait_ms > 0
union all
select
    unclear.cluster,
    unclear.workload_uid,
    unclear.queue,
    unclear.service_class,
    unclear.priority_class,
    unclear.team,
    case when unclear.first_placed_ms < $as_of_ms then unclear.gpu_model else '' end as gpu_model,
    unclear.gang_size,
    case
        when unclear.first_placed_ms < $as_of_ms then 0
        when unclear.ended_ms < $as_of_ms and coalesce(clock.waiting_ms > clock.held_ms, true) then 1
        else 0
    end as value,
    1 as workloads
from unclear
inner join clock
    on unclear.cluster = clock.cluster and unclear.workload_uid = clock.workload_uid
where clock.waiting_ms is not null
"""
NOBODY = "no workload waited for its first placement in the window"
