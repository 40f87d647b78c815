-- What a question would else find out of all rows there ever were: docs/adr/0047.

-- noqa: disable=LT02,RF03,ST03
-- (A macro's body stands at the margin, as a view's does; a table passed on by its name looks unused.)

-- One row per span of the workloads in a table with the columns of gpu_workload; columns as workload_span.
create macro spans_of(workload_table) as table
select
    the_workload.*,
    span.state,
    span.start_ms,
    span.end_ms,
    span.reason,
    span.first_wait,
    span.state in ('queued', 'checking', 'placing') as waits
from span
inner join query_table(workload_table) as the_workload
    on span.cluster = the_workload.cluster
    and span.workload_uid = the_workload.workload_uid
    and span.open_until_ms = the_workload.open_until_ms;

-- One row per waiting span among those of a table with the columns of workload_span, which holds all
-- spans of each of its workloads; columns as waiting_span. Windows are not narrowed by what is joined to
-- them, so who asks about few workloads gives their spans alone.
create macro numbered_waits(span_table) as table
select *
from (
    select
        the_span.*,
        greatest(
            count(case when the_span.state in ('starting', 'running') then 1 end) over earlier,
            case when the_span.first_wait then 0 else 1 end
        ) as episode,
        min(case when the_span.state in ('starting', 'running') then the_span.start_ms end)
            over later as placed_ms
    from query_table(span_table) as the_span
    window
        earlier as (
            partition by cluster, workload_uid, open_until_ms
            order by start_ms, coalesce(end_ms, 9223372036854775807)
            rows between unbounded preceding and current row
        ),
        later as (
            partition by cluster, workload_uid, open_until_ms
            order by start_ms, coalesce(end_ms, 9223372036854775807)
            rows between 1 following and unbounded following
        )
) as numbered
where waits;

-- noqa: enable=all

-- One row per span of a workload that asks GPUs and is counted; waits says whether its state counts as
-- waiting.
create or replace view workload_span as
select * from spans_of('gpu_workload');

-- One row per waiting span. Episodes number the waits of a workload: an episode ends when the
-- workload is placed (placed_ms, null while it is not), so hold, back-off and draining do not cut it.
create or replace view waiting_span as
select * from numbered_waits('workload_span');

-- One row per day that is over and was added up: who held what, and how nodes were held, as
-- service/held_days.py writes and reads it. digest: of the nodes and prices that it was cut by. What is
-- learnt later about pods of the day drops its row: docs/adr/0048.
create table held_day (
    start_ms bigint not null,
    end_ms bigint not null,
    digest varchar not null,
    body blob not null
);
