-- What questions would else find out of many rows again and again: which combinations of dimensions there
-- have been, how long a placed workload had waited for it, and what is a copy: docs/adr/0035.

-- Milliseconds that a workload waited for its first placement; null while it is not placed.
alter table workload add column first_wait_ms bigint;
update workload
set first_wait_ms = 0
where first_placed_ms is not null;
update workload
set first_wait_ms = waited.ms
from (
    select cluster, workload_uid, sum(end_ms - start_ms) as ms
    from span
    where first_wait and state in ('queued', 'checking', 'placing') and end_ms is not null
    group by cluster, workload_uid
) as waited
where
    workload.cluster = waited.cluster
    and workload.workload_uid = waited.workload_uid
    and workload.first_placed_ms is not null;

-- Whether it is MultiKueue's copy of a workload that is counted elsewhere: it has a row in workload_copy.
alter table workload add column is_copy boolean default false;
alter table workload alter column is_copy set not null;
update workload
set is_copy = true
where exists (
    select 1 from workload_copy
    where workload_copy.cluster = workload.cluster and workload_copy.workload_uid = workload.workload_uid
);

-- One row per workload that asks GPUs, copies included, with the dimensions of every figure.
create or replace view gpu_work as
select
    cluster,
    workload_uid,
    kind,
    namespace,
    name,
    team,
    user_name,
    queue,
    priority_class,
    service_class,
    gpu_model,
    case
        when gang_size <= 1 then '1'
        when gang_size <= 2 then '2'
        when gang_size <= 4 then '3-4'
        when gang_size <= 8 then '5-8'
        when gang_size <= 32 then '9-32'
        else '33+'
    end as gang_size,
    requested_micro_gpus,
    submitted_ms,
    first_placed_ms,
    first_running_ms,
    ended_ms,
    outcome,
    open_until_ms,
    first_wait_ms,
    is_copy
from workload
where (requested_micro_gpus is null or requested_micro_gpus > 0) and skewed = '';

-- One row per workload that asks GPUs and is counted, with the dimensions of every figure.
create or replace view gpu_workload as
select * exclude (is_copy)
from gpu_work
where not is_copy;

-- One row per combination of dimensions and user of workloads that were placed, or ended without: since
-- when there has been one. What waits for its first placement is not in it, for it will be of another one.
create table dimensions_seen (
    cluster varchar not null,
    queue varchar not null,
    service_class varchar not null,
    priority_class varchar not null,
    team varchar not null,
    user_name varchar not null,
    gpu_model varchar not null,
    gang_size varchar not null,
    since_ms bigint not null,
    primary key (cluster, queue, service_class, priority_class, team, user_name, gpu_model, gang_size)
);

-- One row per such workload.
create view settled_dimensions as
select
    cluster,
    workload_uid,
    queue,
    service_class,
    priority_class,
    team,
    user_name,
    case when first_placed_ms is null then '' else gpu_model end as gpu_model,
    gang_size,
    coalesce(greatest(first_placed_ms, submitted_ms), submitted_ms) as since_ms,
    open_until_ms
from gpu_workload
where first_placed_ms is not null or ended_ms is not null;

insert into dimensions_seen
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    user_name,
    gpu_model,
    gang_size,
    min(since_ms) as since_ms
from settled_dimensions
group by all;

-- noqa: disable=LT02,RF03
-- (A macro's body stands at the margin, as a view's does; its parameter looks like a column.)

-- One row per combination of dimensions, user included, of which a workload had been submitted before
-- as_of_ms: the model of GPUs is '' where it was not placed by then.
create macro seen_before(as_of_ms) as table
select cluster, queue, service_class, priority_class, team, user_name, gpu_model, gang_size
from dimensions_seen
where since_ms < as_of_ms
union
select cluster, queue, service_class, priority_class, team, user_name, '' as gpu_model, gang_size
from gpu_workload
where
    gpu_workload.open_until_ms >= as_of_ms
    and gpu_workload.submitted_ms < as_of_ms
    and coalesce(gpu_workload.first_placed_ms >= as_of_ms, true);
