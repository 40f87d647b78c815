-- Until when anything of a workload counts, in every row about it, so that a question about now or about a
-- window reads what was open then, and steps over the rest of the past: docs/adr/0031.

-- The same in all rows of a workload: the latest end of anything that is known of it, the largest bigint
-- while something goes on. Rows from before this file keep the largest bigint until they are cut anew.
alter table workload add column open_until_ms bigint default 9223372036854775807;
alter table span add column open_until_ms bigint default 9223372036854775807;
alter table attempt add column open_until_ms bigint default 9223372036854775807;
alter table holding add column open_until_ms bigint default 9223372036854775807;
alter table run add column open_until_ms bigint default 9223372036854775807;
alter table eviction add column open_until_ms bigint default 9223372036854775807;
alter table member_wait add column open_until_ms bigint default 9223372036854775807;
alter table reservation add column open_until_ms bigint default 9223372036854775807;
alter table quota_use add column open_until_ms bigint default 9223372036854775807;
alter table member add column open_until_ms bigint default 9223372036854775807;
alter table workload_shape add column open_until_ms bigint default 9223372036854775807;
alter table workload_copy add column open_until_ms bigint default 9223372036854775807;
alter table pod_device add column open_until_ms bigint default 9223372036854775807;

-- What its rows have at present: by it they are found again when the workload is cut anew.
alter table workload_cut add column open_until_ms bigint default 9223372036854775807;

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
    open_until_ms
from workload
where (requested_micro_gpus is null or requested_micro_gpus > 0) and skewed = '';

-- One row per workload that asks GPUs and is counted, with the dimensions of every figure.
create or replace view gpu_workload as
select gpu_work.*
from gpu_work
anti join workload_copy
    on gpu_work.cluster = workload_copy.cluster
    and gpu_work.workload_uid = workload_copy.workload_uid
    and gpu_work.open_until_ms = workload_copy.open_until_ms;

-- One row per span of such a workload; waits says whether its state counts as waiting.
create or replace view workload_span as
select
    gpu_workload.*,
    span.state,
    span.start_ms,
    span.end_ms,
    span.reason,
    span.first_wait,
    span.state in ('queued', 'checking', 'placing') as waits
from span
inner join gpu_workload
    on span.cluster = gpu_workload.cluster
    and span.workload_uid = gpu_workload.workload_uid
    and span.open_until_ms = gpu_workload.open_until_ms;

-- One row per waiting span. Episodes number the waits of a workload: an episode ends when the
-- workload is placed (placed_ms, null while it is not), so hold, back-off and draining do not cut it.
create or replace view waiting_span as
select *
from (
    select
        workload_span.*,
        greatest(
            count(case when workload_span.state in ('starting', 'running') then 1 end) over earlier,
            case when workload_span.first_wait then 0 else 1 end
        ) as episode,
        min(case when workload_span.state in ('starting', 'running') then workload_span.start_ms end)
            over later as placed_ms
    from workload_span
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

-- One row per attempt, with the dimensions of its workload.
create or replace view workload_attempt as
select
    gpu_workload.*,
    attempt.number,
    attempt.start_ms,
    attempt.end_ms,
    attempt.source
from attempt
inner join gpu_workload
    on attempt.cluster = gpu_workload.cluster
    and attempt.workload_uid = gpu_workload.workload_uid
    and attempt.open_until_ms = gpu_workload.open_until_ms;

-- One row per pod that held GPUs, with the dimensions of its workload; model is the node's.
create or replace view gpu_holding as
select
    gpu_work.* exclude (gpu_model),
    holding.gpu_model,
    holding.attempt,
    holding.pod_uid,
    holding.pod_name,
    holding.node,
    holding.micro_gpus,
    holding.bound_ms,
    holding.started_ms,
    holding.released_ms
from holding
inner join gpu_work
    on holding.cluster = gpu_work.cluster
    and holding.workload_uid = gpu_work.workload_uid
    and holding.open_until_ms = gpu_work.open_until_ms;

-- One row per stretch of reserved quota, with the dimensions of its workload.
create or replace view gpu_reservation as
select
    gpu_work.*,
    reservation.flavor,
    reservation.micro_gpus,
    reservation.start_ms,
    reservation.end_ms
from reservation
inner join gpu_work
    on reservation.cluster = gpu_work.cluster
    and reservation.workload_uid = gpu_work.workload_uid
    and reservation.open_until_ms = gpu_work.open_until_ms;

-- One row per eviction, of an original or a copy, with the dimensions of its workload.
create view gpu_eviction as
select
    gpu_work.*,
    eviction.at_ms,
    eviction.preempted,
    eviction.reason,
    eviction.mechanism,
    eviction.missed,
    eviction.preemptor_uid,
    gpu_work.service_class as victim_class
from eviction
inner join gpu_work
    on eviction.cluster = gpu_work.cluster
    and eviction.workload_uid = gpu_work.workload_uid
    and eviction.open_until_ms = gpu_work.open_until_ms;

-- One row per eviction, of an original or a copy; the preemptor's class is '' where nobody knows it.
create or replace view workload_eviction as
select
    gpu_eviction.* exclude (preemptor_uid),
    coalesce(preemptor.service_class, '') as preemptor_class
from gpu_eviction
left join member as preemptor_member
    on gpu_eviction.cluster = preemptor_member.cluster
    and gpu_eviction.preemptor_uid = preemptor_member.object_uid
left join workload as preemptor
    on preemptor_member.cluster = preemptor.cluster
    and preemptor_member.workload_uid = preemptor.workload_uid;

-- One row per preemption that a workload went through, with when it was preempted before, null the first
-- time; missed: how many more there were that only a counter tells of.
create or replace view workload_preemption as
select
    * exclude (preempted, preemptor_uid),
    lag(at_ms) over (partition by cluster, workload_uid, open_until_ms order by at_ms) as before_ms
from gpu_eviction
where preempted;

-- One row per wait of a single pod, with the dimensions of its workload; placed: it ended in a binding.
create or replace view member_waiting as
with bound as (
    select distinct cluster, workload_uid, open_until_ms, pod_uid, bound_ms
    from holding
)

select
    gpu_workload.*,
    member_wait.pod_uid,
    member_wait.micro_gpus,
    member_wait.start_ms,
    member_wait.end_ms,
    bound.pod_uid is not null as placed
from member_wait
inner join gpu_workload
    on member_wait.cluster = gpu_workload.cluster
    and member_wait.workload_uid = gpu_workload.workload_uid
    and member_wait.open_until_ms = gpu_workload.open_until_ms
left join bound
    on member_wait.cluster = bound.cluster
    and member_wait.workload_uid = bound.workload_uid
    and member_wait.open_until_ms = bound.open_until_ms
    and member_wait.pod_uid = bound.pod_uid
    and member_wait.end_ms = bound.bound_ms;

-- One row per pod that held GPUs, also of workloads whose record is set aside: what is on a node.
create or replace view node_holding as
select cluster, node, micro_gpus, bound_ms, released_ms, open_until_ms
from holding
where micro_gpus is null or micro_gpus > 0;

-- One row per pod on a node and GPU resource that it holds, also of workloads whose record is set aside.
create or replace view device_holding as
select
    holding.cluster,
    holding.node,
    holding.workload_uid,
    holding.pod_uid,
    pod_device.resource,
    pod_device.devices,
    coalesce(pod_device.wants, '') as wants,
    holding.bound_ms,
    holding.released_ms,
    coalesce(workload.service_class, '') as service_class,
    holding.open_until_ms
from holding
inner join pod_device
    on holding.cluster = pod_device.cluster
    and holding.workload_uid = pod_device.workload_uid
    and holding.pod_uid = pod_device.pod_uid
    and holding.open_until_ms = pod_device.open_until_ms
left join workload
    on holding.cluster = workload.cluster
    and holding.workload_uid = workload.workload_uid
    and holding.open_until_ms = workload.open_until_ms;

-- One row per holding of GPUs with what the interactive rules ask of it, records set aside included.
create or replace view class_holding as
select
    holding.cluster,
    holding.node,
    holding.gpu_model,
    holding.micro_gpus,
    holding.bound_ms,
    holding.released_ms,
    coalesce(workload.service_class, '') as service_class,
    coalesce(workload.user_name, '') as user_name,
    holding.open_until_ms
from holding
left join workload
    on holding.cluster = workload.cluster
    and holding.workload_uid = workload.workload_uid
    and holding.open_until_ms = workload.open_until_ms
where holding.micro_gpus is null or holding.micro_gpus > 0;

-- One row per waiting span, part of its workload and GPU resource: a copy may be placed where it waits.
create or replace view waiting_ask as
select
    gpu_work.cluster,
    gpu_work.workload_uid,
    gpu_work.queue,
    workload_shape.part,
    workload_shape.resource,
    workload_shape.pods,
    workload_shape.devices,
    coalesce(workload_shape.wants, '') as wants,
    span.start_ms,
    span.end_ms,
    gpu_work.open_until_ms
from span
inner join gpu_work
    on span.cluster = gpu_work.cluster
    and span.workload_uid = gpu_work.workload_uid
    and span.open_until_ms = gpu_work.open_until_ms
inner join workload_shape
    on span.cluster = workload_shape.cluster
    and span.workload_uid = workload_shape.workload_uid
    and span.open_until_ms = workload_shape.open_until_ms
where span.state in ('queued', 'checking', 'placing');

-- One row per workload, part of it and GPU resource, with the instant of its submission.
create or replace view asked_shape as
select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.submitted_ms,
    workload_shape.resource,
    workload_shape.pods,
    workload_shape.devices,
    gpu_workload.open_until_ms
from gpu_workload
inner join workload_shape
    on gpu_workload.cluster = workload_shape.cluster
    and gpu_workload.workload_uid = workload_shape.workload_uid
    and gpu_workload.open_until_ms = workload_shape.open_until_ms;

-- One row per workload and whole-GPU shape of its pods.
create or replace view whole_gpu_ask as
select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.first_placed_ms,
    gpu_workload.gpu_model,
    workload_shape.devices,
    gpu_workload.open_until_ms
from gpu_workload
inner join workload_shape
    on gpu_workload.cluster = workload_shape.cluster
    and gpu_workload.workload_uid = workload_shape.workload_uid
    and gpu_workload.open_until_ms = workload_shape.open_until_ms
where workload_shape.resource = 'nvidia.com/gpu';

-- One row per workload that asks no GPU, with its minimum members.
create or replace view plain_workload as
select cluster, workload_uid, submitted_ms, greatest(gang_size, 1) as pods, open_until_ms
from workload
where requested_micro_gpus = 0;

-- One row per workload, flavor and stretch of reserved quota.
create or replace view quota_used as
select cluster, workload_uid, queue, flavor, resources, start_ms, end_ms, open_until_ms
from quota_use;

-- One row per run of a pod's main containers, with the dimensions of its workload; a pod whose containers
-- nobody reads runs from its start to its release.
create or replace view gpu_run as
select
    gpu_holding.*,
    coalesce(run.start_ms, gpu_holding.started_ms) as start_ms,
    least(
        coalesce(run.end_ms, 9223372036854775807), coalesce(gpu_holding.released_ms, 9223372036854775807)
    ) as end_ms
from gpu_holding
left join run
    on gpu_holding.cluster = run.cluster
    and gpu_holding.workload_uid = run.workload_uid
    and gpu_holding.pod_uid = run.pod_uid
    and gpu_holding.open_until_ms = run.open_until_ms
where coalesce(run.start_ms, gpu_holding.started_ms) is not null;

-- One row per workload and instant at which one of its objects says that it wrote a checkpoint.
create table checkpoint_told (
    cluster varchar not null,
    workload_uid varchar not null,
    at_ms bigint not null,
    open_until_ms bigint default 9223372036854775807
);

-- The same, as metrics read it.
create or replace view workload_checkpoint as
select cluster, workload_uid, open_until_ms, at_ms
from checkpoint_told;

-- The new column and the new table are filled by cutting all lives anew.
delete from watermark
where job = 'lives';
