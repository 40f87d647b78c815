-- Once is enough: what somebody else counted in queues lies by itself, and what MultiKueue copied is one.

-- One row per stretch of a queue in which its counts stayed the same; stretches of a queue do not overlap,
-- and between two of them nothing is known. Null: that was not counted.
create table queue_state (
    cluster varchar not null,
    queue varchar not null,
    start_ms bigint not null,
    end_ms bigint not null,
    running_workloads bigint,
    waiting_workloads bigint,
    held_micro_gpus bigint,
    waiting_micro_gpus bigint,
    idle_micro_gpus bigint,
    total_micro_gpus bigint
);

-- One row per workload that is MultiKueue's copy of one in another cluster: that one is counted, and what
-- the copy's pods hold. What is said of the original's placement rests on the pods of its copies.
create table workload_copy (
    cluster varchar not null,
    workload_uid varchar not null,
    of_cluster varchar not null,
    of_workload_uid varchar not null
);

-- One row per workload that asks GPUs, copies included, with the dimensions of every figure.
create view gpu_work as
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

-- One row per workload that asks GPUs and is counted, with the dimensions of every figure.
create or replace view gpu_workload as
select gpu_work.*
from gpu_work
where not exists (
    select 1
    from workload_copy
    where workload_copy.cluster = gpu_work.cluster and workload_copy.workload_uid = gpu_work.workload_uid
);

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
    on holding.cluster = gpu_work.cluster and holding.workload_uid = gpu_work.workload_uid;

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
    and reservation.workload_uid = gpu_work.workload_uid;

-- One row per eviction, of an original or a copy; the preemptor's class is '' where nobody knows it.
create or replace view workload_eviction as
select
    gpu_work.*,
    eviction.at_ms,
    eviction.preempted,
    eviction.reason,
    eviction.mechanism,
    eviction.missed,
    gpu_work.service_class as victim_class,
    coalesce(preemptor.service_class, '') as preemptor_class
from eviction
inner join gpu_work
    on eviction.cluster = gpu_work.cluster and eviction.workload_uid = gpu_work.workload_uid
left join member as preemptor_member
    on eviction.cluster = preemptor_member.cluster
    and eviction.preemptor_uid = preemptor_member.object_uid
left join workload as preemptor
    on preemptor_member.cluster = preemptor.cluster
    and preemptor_member.workload_uid = preemptor.workload_uid;

-- One row per piece, with the dimensions of its workload; gpu_model is the node's.
create or replace view gpu_time as
select
    gpu_work.* exclude (gpu_model),
    waste_piece.gpu_model,
    waste_piece.node,
    waste_piece.pod_uid,
    waste_piece.attempt,
    waste_piece.device,
    waste_piece.micro_gpus,
    waste_piece.start_ms,
    waste_piece.end_ms,
    waste_piece.cause,
    waste_piece.known_ms,
    waste_piece.earlier_cause,
    waste_piece.may_be,
    waste_piece.charged,
    waste_piece.restart
from waste_piece
inner join gpu_work
    on waste_piece.cluster = gpu_work.cluster and waste_piece.workload_uid = gpu_work.workload_uid;

-- One row per stretch of waiting after an own failure, with the dimensions of its workload.
create or replace view own_failure_waiting as
select gpu_work.*, own_failure_wait.micro_gpus, own_failure_wait.start_ms, own_failure_wait.end_ms
from own_failure_wait
inner join gpu_work
    on own_failure_wait.cluster = gpu_work.cluster
    and own_failure_wait.workload_uid = gpu_work.workload_uid;

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
    span.end_ms
from span
inner join gpu_work
    on span.cluster = gpu_work.cluster and span.workload_uid = gpu_work.workload_uid
inner join workload_shape
    on span.cluster = workload_shape.cluster and span.workload_uid = workload_shape.workload_uid
where span.state in ('queued', 'checking', 'placing');

-- Which workload is a copy of which is found by cutting all lives anew.
delete from watermark
where job = 'lives';
