"""Whose owner gave up before it was placed: the rows that the number and the share rest on."""

UNPLACED = """\
-- One row per workload that was not yet placed in some part of [$window_start_ms, $as_of_ms); value
-- is 1 where it ended there while it waited. waited_ms is its queue wait so far.
with clock as (
    select
        cluster,
        workload_uid,
        max(case when waits then start_ms end) as waiting_ms,
        max(case when state = 'held' then start_ms end) as held_ms,
        sum(
            case when waits then least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms else 0 end
        ) as waited_ms
    from workload_span
    where start_ms < $as_of_ms and open_until_ms >= $window_start_ms
    group by cluster, workload_uid
)

select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.queue,
    gpu_workload.service_class,
    gpu_workload.priority_class,
    gpu_workload.team,
    case when gpu_workload.first_placed_ms < $as_of_ms then gpu_workload.gpu_model else '' end as gpu_model,
    gpu_workload.gang_size,
    clock.waited_ms,
    case
        when gpu_workload.first_placed_ms < $as_of_ms then 0
        when gpu_workload.ended_ms < $as_of_ms and coalesce(clock.waiting_ms > clock.held_ms, true) then 1
        else 0
    end as value
from gpu_workload
inner join clock
    on gpu_workload.cluster = clock.cluster and gpu_workload.workload_uid = clock.workload_uid
where
    gpu_workload.submitted_ms < $as_of_ms
    and gpu_workload.open_until_ms >= $window_start_ms
    and clock.waiting_ms is not null
    and coalesce(gpu_workload.first_placed_ms >= $window_start_ms, true)
    and coalesce(gpu_workload.ended_ms >= $window_start_ms, true)
"""
NOBODY = "no workload waited for its first placement in the window"
