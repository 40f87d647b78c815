-- Milliseconds that a workload waited for its first placement: up to it, or up to its own end where it ended
-- without one; null while neither has come. So nobody adds up the spans of what is over.
update workload
set first_wait_ms = 0
where first_placed_ms is null and ended_ms is not null;
update workload
set first_wait_ms = waited.ms
from (
    select
        cluster,
        workload_uid,
        sum(end_ms - start_ms) as ms
    from span
    where first_wait and state in ('queued', 'checking', 'placing') and end_ms is not null
    group by cluster, workload_uid
) as waited
where
    workload.cluster = waited.cluster
    and workload.workload_uid = waited.workload_uid
    and workload.first_placed_ms is null
    and workload.ended_ms is not null;
