-- What was told of when waiting work would start, so that it can be held against what came: docs/adr/0036.

-- One row per workload and mark of its age: at at_ms it was told that low_ms to high_ms were left of its
-- wait, from like_count waits of the rung first of all. replayed: worked out afterwards, from what was known.
create table eta_told (
    cluster varchar not null,
    workload_uid varchar not null,
    service_class varchar not null,
    mark bigint not null,
    at_ms bigint not null,
    low_ms bigint not null,
    median_ms bigint not null,
    high_ms bigint not null,
    rung varchar not null,
    like_count bigint not null,
    replayed boolean not null
);

-- noqa: disable=LT02,RF03
-- (A macro's body stands at the margin; its parameters look like columns.)

-- One row per interval that has an outcome as of an instant: since when it is known, and on which side of
-- the interval it fell. That somebody starts late is known once it is over; who gave up inside is left out.
create macro eta_outcomes(as_of) as table
with told as (
    select
        eta_told.*,
        gpu_workload.queue,
        gpu_workload.first_placed_ms,
        least(
            coalesce(gpu_workload.first_placed_ms, as_of), coalesce(gpu_workload.ended_ms, as_of), as_of
        ) as until_ms
    from eta_told
    inner join gpu_workload
        on eta_told.cluster = gpu_workload.cluster and eta_told.workload_uid = gpu_workload.workload_uid
    where eta_told.at_ms < as_of
)

select
    cluster,
    workload_uid,
    service_class,
    queue,
    mark,
    at_ms,
    low_ms,
    median_ms,
    high_ms,
    case when until_ms - at_ms > high_ms then at_ms + high_ms + 1 else until_ms end as known_ms,
    case when until_ms - at_ms > high_ms then 1 when until_ms - at_ms < low_ms then -1 else 0 end as side
from told
where until_ms - at_ms > high_ms or (first_placed_ms < as_of and first_placed_ms = until_ms);

-- noqa: enable=all
