-- Work that was placed before and waits again is told of as well: docs/adr/0058.

-- Which of its waits was told of: 0 for the first one, else how many spans it had been placed for by then.
alter table eta_told add column episode bigint default 0;
alter table eta_told alter column episode set not null;

-- noqa: disable=LT02,RF03
-- (A macro's body stands at the margin; its parameters look like columns.)

-- One row per interval that has an outcome as of an instant: since when it is known, and on which side of
-- the interval it fell. That somebody starts late is known once it is over; who gave up inside is left out.
-- A wait ends with the first place after it was told of; again: it was not the workload's first wait.
create or replace macro eta_outcomes(as_of) as table
with placed_again as (
    select
        eta_told.cluster,
        eta_told.workload_uid,
        eta_told.episode,
        min(span.start_ms) as placed_ms
    from eta_told
    inner join span
        on
            eta_told.cluster = span.cluster
            and eta_told.workload_uid = span.workload_uid
            and eta_told.at_ms <= span.start_ms
    where
        eta_told.episode > 0
        and eta_told.at_ms < as_of
        and span.state in ('starting', 'running')
    group by eta_told.cluster, eta_told.workload_uid, eta_told.episode
),

told as (
    select
        eta_told.*,
        gpu_workload.queue,
        gpu_workload.ended_ms,
        case
            when eta_told.episode = 0 then gpu_workload.first_placed_ms else placed_again.placed_ms
        end as placed_ms
    from eta_told
    inner join gpu_workload
        on eta_told.cluster = gpu_workload.cluster and eta_told.workload_uid = gpu_workload.workload_uid
    left join placed_again
        on
            eta_told.cluster = placed_again.cluster
            and eta_told.workload_uid = placed_again.workload_uid
            and eta_told.episode = placed_again.episode
    where eta_told.at_ms < as_of
),

ended as (
    select
        *,
        least(coalesce(placed_ms, as_of), coalesce(ended_ms, as_of), as_of) as until_ms
    from told
)

select
    cluster,
    workload_uid,
    service_class,
    queue,
    mark,
    episode > 0 as again,
    at_ms,
    low_ms,
    median_ms,
    high_ms,
    case when until_ms - at_ms > high_ms then at_ms + high_ms + 1 else until_ms end as known_ms,
    case when until_ms - at_ms > high_ms then 1 when until_ms - at_ms < low_ms then -1 else 0 end as side
from ended
where until_ms - at_ms > high_ms or (placed_ms < as_of and placed_ms = until_ms);

-- noqa: enable=all
