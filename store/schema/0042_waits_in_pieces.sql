-- Whether the waiting of a workload is more than one piece from its submission to its placement, or to its
-- end: it was held in between, or goes on. Of all other work its own row tells when it waited: docs/adr/0072.
alter table workload add column waits_in_pieces boolean default false;
alter table workload alter column waits_in_pieces set not null;
update workload
set waits_in_pieces = true
where not coalesce(submitted_ms + first_wait_ms = coalesce(first_placed_ms, ended_ms), false);

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
    is_copy,
    waits_in_pieces
from workload
where (requested_micro_gpus is null or requested_micro_gpus > 0) and skewed = '';

-- One row per workload that asks GPUs and is counted, with the dimensions of every figure.
create or replace view gpu_workload as
select * exclude (is_copy)
from gpu_work
where not is_copy;
