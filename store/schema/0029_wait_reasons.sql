-- Why workloads waited, look by look: docs/adr/0038.

-- One row per workload and stretch of looks that found the same primary reason; end_ms is the largest
-- bigint while the last look still stands. source: who said so. blocker: what stood in the way, never a
-- workload.
create table wait_reason (
    cluster varchar not null,
    workload_uid varchar not null,
    reason varchar not null,
    source varchar not null,
    blocker varchar not null,
    start_ms bigint not null,
    end_ms bigint not null
);

-- One row per cluster: the instant of the last look.
create table reason_look (
    cluster varchar not null,
    at_ms bigint not null
);

-- noqa: disable=LT02,RF03,ST03
-- (A macro's body stands at the margin; its parameters look like columns, and a table that is passed on by
-- its name looks unused.)

-- One row per piece of time in [from_ms, to_ms) in which a workload did not run, with the one reason of it:
-- as a look found it, else what its state says alone, else NOT_EVALUATED. Pieces of a workload leave no
-- hole and do not overlap; together they are its spans before it runs.
-- span_table: workload_span, or some of its rows.
create macro reason_pieces(span_table, from_ms, to_ms) as table
with stretch as (
    select
        * exclude (start_ms, end_ms, reason),
        reason as word,
        start_ms as span_start_ms,
        greatest(start_ms, from_ms) as start_ms,
        least(coalesce(end_ms, to_ms), to_ms) as end_ms
    from query_table(span_table)
    where
        state in ('held', 'queued', 'checking', 'placing', 'starting', 'backoff')
        and open_until_ms >= from_ms
        and start_ms < to_ms
        and coalesce(end_ms > from_ms, true)
),

looked as (
    select
        stretch.* replace (
            greatest(stretch.start_ms, wait_reason.start_ms) as start_ms,
            least(stretch.end_ms, wait_reason.end_ms) as end_ms
        ),
        wait_reason.reason,
        wait_reason.source,
        wait_reason.blocker
    from stretch
    inner join wait_reason
        on stretch.cluster = wait_reason.cluster
        and stretch.workload_uid = wait_reason.workload_uid
        and stretch.start_ms < wait_reason.end_ms
        and stretch.end_ms > wait_reason.start_ms
    where wait_reason.end_ms > from_ms and wait_reason.start_ms < to_ms
),

-- Each piece that was looked at, and the end of each stretch: what lies between two of them is a gap.
edge as (
    select * exclude (reason, source, blocker)
    from looked
    union all
    select * replace (end_ms as start_ms)
    from stretch
),

gap as (
    select
        edge.* replace (
            greatest(
                coalesce(lag(end_ms) over course, 0), span_start_ms, from_ms
            ) as start_ms,
            start_ms as end_ms
        )
    from edge
    window course as (
        partition by cluster, workload_uid, open_until_ms, span_start_ms
        order by start_ms, end_ms
    )
)

select *
from looked
where start_ms < end_ms
union all
select
    *,
    case
        when state = 'held' and word = 'SchedulingGated' then 'GATED'
        when state = 'held' then 'HELD_BY_OWNER'
        when state = 'checking' then 'ADMISSION_CHECK'
        when state = 'starting' then 'STARTING'
        when state = 'backoff' then 'BACKOFF'
        else 'NOT_EVALUATED'
    end as reason,
    case when state in ('queued', 'placing') then '' else 'state' end as source,
    '' as blocker
from gap
where start_ms < end_ms;

-- The same of all workloads that ask GPUs and are counted.
create macro wait_reasons(from_ms, to_ms) as table
select * from reason_pieces('workload_span', from_ms, to_ms);

-- noqa: enable=all
