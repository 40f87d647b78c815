-- Stays as an accounting tool books them, of work with GPUs and without.

-- What a table of another scheduler tells of a stay, of which a pod is the whole: null where nobody tells.
alter table holding add column milli_cpus bigint;
alter table holding add column nodes bigint;

-- One row per attempt of any workload, with its dimensions. population: whether it asks GPUs (gpu) or none
-- (cpu). submitted_ms: its submission; of a later attempt when it queued again.
create view booked_stay as
with ordered as (
    select
        *,
        lag(end_ms) over (partition by cluster, workload_uid order by number) as freed_ms
    from attempt
),

queued_again as (
    select
        ordered.cluster,
        ordered.workload_uid,
        ordered.number,
        min(span.start_ms) as submitted_ms
    from ordered
    inner join span
        on ordered.cluster = span.cluster
        and ordered.workload_uid = span.workload_uid
        and ordered.freed_ms <= span.start_ms
        and ordered.start_ms > span.start_ms
    where span.state in ('held', 'queued', 'checking', 'placing')
    group by ordered.cluster, ordered.workload_uid, ordered.number
)

select
    workload.cluster,
    workload.workload_uid,
    workload.team,
    workload.user_name,
    workload.queue,
    workload.priority_class,
    workload.service_class,
    case when workload.requested_micro_gpus = 0 then 'cpu' else 'gpu' end as population,
    ordered.number,
    case
        when ordered.number = 1 then least(workload.submitted_ms, ordered.start_ms)
        else coalesce(queued_again.submitted_ms, ordered.start_ms)
    end as submitted_ms,
    ordered.start_ms,
    ordered.end_ms
from ordered
inner join workload
    on ordered.cluster = workload.cluster and ordered.workload_uid = workload.workload_uid
left join queued_again
    on ordered.cluster = queued_again.cluster
    and ordered.workload_uid = queued_again.workload_uid
    and ordered.number = queued_again.number
where workload.skewed = '';

-- One row per pod of such a stay. nodes: null where one pod stands for several, and nobody tells how many.
create view booked_pod as
select
    holding.cluster,
    holding.workload_uid,
    holding.attempt as number,
    nullif(holding.node, '') as node,
    holding.micro_gpus,
    holding.milli_cpus,
    holding.nodes,
    workload.kind = 'ImportedJob' as is_whole,
    holding.bound_ms,
    coalesce(holding.cut, '') != '' as is_lost,
    holding.cut_known_ms as lost_known_ms
from holding
inner join workload
    on holding.cluster = workload.cluster and holding.workload_uid = workload.workload_uid;

-- One row per workload that was placed and has ended, with GPUs or without; how long it waited in all, and
-- ran.
create view ended_work as
select
    workload.cluster,
    workload.workload_uid,
    workload.team,
    workload.user_name,
    workload.queue,
    workload.priority_class,
    workload.service_class,
    workload.gpu_model,
    case when workload.requested_micro_gpus = 0 then 'cpu' else 'gpu' end as population,
    workload.ended_ms,
    coalesce(
        sum(case when span.state in ('queued', 'checking', 'placing') then span.end_ms - span.start_ms end), 0
    )::bigint as waited_ms,
    coalesce(sum(case when span.state = 'running' then span.end_ms - span.start_ms end), 0)::bigint as ran_ms
from workload
left join span
    on workload.cluster = span.cluster and workload.workload_uid = span.workload_uid
where workload.first_placed_ms is not null and workload.ended_ms is not null and workload.skewed = ''
group by
    workload.cluster,
    workload.workload_uid,
    workload.team,
    workload.user_name,
    workload.queue,
    workload.priority_class,
    workload.service_class,
    workload.gpu_model,
    workload.requested_micro_gpus,
    workload.ended_ms;
