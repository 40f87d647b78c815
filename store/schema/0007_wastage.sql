-- What held GPU-time was for: derived of lives, activity and checkpoints by the stage `wastage`.

-- One row per piece of what a pod held with one cause; end_ms null while it goes on. As of an instant before
-- known_ms the piece counted as earlier_cause. may_be: the loss that it is too if nothing was saved.
-- charged: self-inflicted. restart: the attempt follows one that failed by itself. device '' is all of
-- the pod's GPUs, or those of which nothing was seen.
create table waste_piece (
    cluster varchar not null,
    workload_uid varchar not null,
    pod_uid varchar not null,
    attempt bigint not null,
    node varchar not null,
    gpu_model varchar not null,
    device varchar not null,
    micro_gpus bigint,
    start_ms bigint not null,
    end_ms bigint,
    cause varchar not null,
    known_ms bigint,
    earlier_cause varchar not null,
    may_be varchar not null,
    charged boolean not null,
    restart boolean not null
);

-- One row per stretch in which a workload waited again after it had failed by itself, with the GPUs that it
-- waited for; end_ms null while it waits.
create table own_failure_wait (
    cluster varchar not null,
    workload_uid varchar not null,
    micro_gpus bigint,
    start_ms bigint not null,
    end_ms bigint
);

-- One row per workload that was accounted: of which cut of its life and of its activity, by which rules.
create table waste_account (
    cluster varchar not null,
    workload_uid varchar not null,
    lives_seq bigint not null,
    activity_seq bigint not null,
    rules varchar not null
);

-- One row per piece, with the dimensions of its workload; gpu_model is the node's.
create view gpu_time as
select
    gpu_workload.* exclude (gpu_model),
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
inner join gpu_workload
    on waste_piece.cluster = gpu_workload.cluster and waste_piece.workload_uid = gpu_workload.workload_uid;

-- One row per stretch of waiting after an own failure, with the dimensions of its workload.
create view own_failure_waiting as
select gpu_workload.*, own_failure_wait.micro_gpus, own_failure_wait.start_ms, own_failure_wait.end_ms
from own_failure_wait
inner join gpu_workload
    on own_failure_wait.cluster = gpu_workload.cluster
    and own_failure_wait.workload_uid = gpu_workload.workload_uid;

-- One row per workload and instant at which one of its objects says that it wrote a checkpoint.
create view workload_checkpoint as
select distinct member.cluster, member.workload_uid, transition.at_ms
from transition
inner join member on transition.cluster = member.cluster and transition.uid = member.object_uid
where transition.moment = 'checkpoint';

-- One row per run of a pod's main containers, with the dimensions of its workload; a pod whose containers
-- nobody reads runs from its start to its release.
create view gpu_run as
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
where coalesce(run.start_ms, gpu_holding.started_ms) is not null;

-- One row per stretch of one level of a device that a pod held, with the dimensions of its workload.
create view device_level as
select
    gpu_holding.* exclude (micro_gpus),
    activity_span.device,
    activity_span.micro_gpus,
    activity_span.start_ms,
    activity_span.end_ms,
    activity_span.level
from activity_span
inner join gpu_holding
    on activity_span.cluster = gpu_holding.cluster
    and activity_span.workload_uid = gpu_holding.workload_uid
    and activity_span.pod_uid = gpu_holding.pod_uid;
