-- The views that metrics read: this file is the contract. Times are clipped by the metric, at
-- $as_of_ms, so that facts about later instants never change an earlier answer.

-- One row per workload that asks GPUs, with the dimensions of every figure.
create view gpu_workload as
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
    outcome
from workload
where (requested_micro_gpus is null or requested_micro_gpus > 0) and skewed = '';

-- One row per span of such a workload; waits says whether its state counts as waiting.
create view workload_span as
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
    on span.cluster = gpu_workload.cluster and span.workload_uid = gpu_workload.workload_uid;

-- One row per pod that held GPUs, with the dimensions of its workload; model is the node's.
create view gpu_holding as
select
    gpu_workload.* exclude (gpu_model),
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
inner join gpu_workload
    on holding.cluster = gpu_workload.cluster and holding.workload_uid = gpu_workload.workload_uid;

-- One row per stretch of reserved quota, with the dimensions of its workload.
create view gpu_reservation as
select
    gpu_workload.*,
    reservation.flavor,
    reservation.micro_gpus,
    reservation.start_ms,
    reservation.end_ms
from reservation
inner join gpu_workload
    on reservation.cluster = gpu_workload.cluster
    and reservation.workload_uid = gpu_workload.workload_uid;

-- One row per eviction; the preemptor's class is '' where nobody knows it.
create view workload_eviction as
select
    gpu_workload.*,
    eviction.at_ms,
    eviction.preempted,
    eviction.reason,
    eviction.mechanism,
    eviction.missed,
    gpu_workload.service_class as victim_class,
    coalesce(preemptor.service_class, '') as preemptor_class
from eviction
inner join gpu_workload
    on eviction.cluster = gpu_workload.cluster and eviction.workload_uid = gpu_workload.workload_uid
left join member as preemptor_member
    on eviction.cluster = preemptor_member.cluster
    and eviction.preemptor_uid = preemptor_member.object_uid
left join workload as preemptor
    on preemptor_member.cluster = preemptor.cluster
    and preemptor_member.workload_uid = preemptor.workload_uid;

-- One row per node and stretch of unchanged capacity.
create view node_capacity as
select cluster, node, gpu_model, start_ms, end_ms, capacity_micro_gpus, allocatable_micro_gpus, schedulable
from node_span;

-- One row per queue and stretch in which it exists.
create view live_queue as
select cluster, queue, kind, start_ms, end_ms
from queue_span;

-- One row per waiting span. Episodes number the waits of a workload: an episode ends when the
-- workload is placed (placed_ms, null while it is not), so hold, back-off and draining do not cut it.
create view waiting_span as
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
            partition by cluster, workload_uid
            order by start_ms, coalesce(end_ms, 9223372036854775807)
            rows between unbounded preceding and current row
        ),
        later as (
            partition by cluster, workload_uid
            order by start_ms, coalesce(end_ms, 9223372036854775807)
            rows between 1 following and unbounded following
        )
) as numbered
where waits;

-- One row per attempt, with the dimensions of its workload.
create view workload_attempt as
select
    gpu_workload.*,
    attempt.number,
    attempt.start_ms,
    attempt.end_ms,
    attempt.source
from attempt
inner join gpu_workload
    on attempt.cluster = gpu_workload.cluster and attempt.workload_uid = gpu_workload.workload_uid;

-- One row per pod that held GPUs, also of workloads whose record is set aside: what is on a node.
create view node_holding as
select cluster, node, micro_gpus, bound_ms, released_ms
from holding
where micro_gpus is null or micro_gpus > 0;
