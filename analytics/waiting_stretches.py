"""Who waits at many instants: the stretches in which work waits, of which one sweep gives every depth."""

from typing import Final

# Of most work it is told by three instants of its own that it waited from its submission to its placement,
# or to its end: where the waits add up to that length they leave no hole. Spans are read of the rest only,
# and of work that waits again after a placement. Its row says of which it is, so that neither is looked for
# among all work.
WAITING_STRETCHES: Final = """\
-- One row per stretch in which a workload waits, and of zeros per stretch in which a combination of
-- dimensions is known of a queue that may exist; it counts at instants after after_ms, up to until_ms.
with ends_of_pieces as (
    select distinct open_until_ms
    from gpu_workload
    where
        waits_in_pieces
        and submitted_ms < $last_ms
        and open_until_ms >= $first_ms
        and coalesce(first_placed_ms >= $first_ms, true)
),

in_pieces as materialized (
    select
        gpu_workload.*,
        least(coalesce(first_placed_ms, open_until_ms), open_until_ms) as not_placed_until_ms
    from gpu_workload
    semi join ends_of_pieces on gpu_workload.open_until_ms = ends_of_pieces.open_until_ms
    where
        waits_in_pieces
        and submitted_ms < $last_ms
),

again_of as (
    select cluster, workload_uid, open_until_ms
    from workload
    where waits_again and submitted_ms < $last_ms and open_until_ms >= $first_ms
),

again as (
    select span.*
    from span
    semi join again_of
        on span.cluster = again_of.cluster
        and span.workload_uid = again_of.workload_uid
        and span.open_until_ms = again_of.open_until_ms
    where
        not first_wait
        and state in ('queued', 'checking', 'placing')
        and start_ms < $last_ms
        and open_until_ms >= $first_ms
),

-- Stretches in which a queue is not known to be gone: before it was first seen, and while it is there.
first_seen as (
    select
        cluster,
        queue,
        min(start_ms) as start_ms
    from live_queue
    group by cluster, queue
),

may_exist as (
    select
        cluster,
        queue,
        0 as from_ms,
        start_ms as to_ms
    from first_seen
    union all
    select
        cluster,
        queue,
        start_ms as from_ms,
        coalesce(end_ms, 9223372036854775807) as to_ms
    from live_queue
),

known as (
    select distinct
        cluster,
        queue,
        service_class,
        priority_class,
        team,
        gpu_model,
        gang_size,
        since_ms as after_ms,
        9223372036854775807 as until_ms
    from dimensions_seen
    union all
    select
        cluster,
        queue,
        service_class,
        priority_class,
        team,
        '' as gpu_model,
        gang_size,
        submitted_ms as after_ms,
        not_placed_until_ms as until_ms
    from in_pieces
)

select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    '' as gpu_model,
    gang_size,
    1 as workloads,
    requested_micro_gpus as micro_gpus,
    submitted_ms as after_ms,
    least(submitted_ms + first_wait_ms, open_until_ms) as until_ms
from gpu_workload
where
    not waits_in_pieces
    and first_wait_ms > 0
    and submitted_ms < $last_ms
    and open_until_ms >= $first_ms
union all
select
    in_pieces.cluster,
    in_pieces.queue,
    in_pieces.service_class,
    in_pieces.priority_class,
    in_pieces.team,
    '' as gpu_model,
    in_pieces.gang_size,
    1 as workloads,
    in_pieces.requested_micro_gpus as micro_gpus,
    greatest(span.start_ms, in_pieces.submitted_ms) as after_ms,
    least(coalesce(span.end_ms, in_pieces.not_placed_until_ms), in_pieces.not_placed_until_ms) as until_ms
from span
inner join in_pieces
    on span.cluster = in_pieces.cluster
    and span.workload_uid = in_pieces.workload_uid
    and span.open_until_ms = in_pieces.open_until_ms
where span.state in ('queued', 'checking', 'placing')
union all
select
    gpu_workload.cluster,
    gpu_workload.queue,
    gpu_workload.service_class,
    gpu_workload.priority_class,
    gpu_workload.team,
    gpu_workload.gpu_model,
    gpu_workload.gang_size,
    1 as workloads,
    gpu_workload.requested_micro_gpus as micro_gpus,
    greatest(again.start_ms, gpu_workload.submitted_ms, gpu_workload.first_placed_ms) as after_ms,
    least(coalesce(again.end_ms, gpu_workload.open_until_ms), gpu_workload.open_until_ms) as until_ms
from again
inner join gpu_workload
    on again.cluster = gpu_workload.cluster
    and again.workload_uid = gpu_workload.workload_uid
    and again.open_until_ms = gpu_workload.open_until_ms
where gpu_workload.first_placed_ms is not null
union all
select
    known.cluster,
    known.queue,
    known.service_class,
    known.priority_class,
    known.team,
    known.gpu_model,
    known.gang_size,
    0 as workloads,
    0 as micro_gpus,
    greatest(known.after_ms, coalesce(may_exist.from_ms, 0)) as after_ms,
    least(known.until_ms, coalesce(may_exist.to_ms, 9223372036854775807)) as until_ms
from known
left join may_exist
    on known.cluster = may_exist.cluster and known.queue = may_exist.queue
"""
