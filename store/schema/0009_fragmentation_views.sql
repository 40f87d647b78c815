-- What fragmentation rests on: devices by resource name, for a pod fits by devices, not by sums of GPUs.

-- One row per workload, part of it and GPU resource: pods, each of which asks so many devices.
create table workload_shape (
    cluster varchar not null,
    workload_uid varchar not null,
    part bigint not null,
    resource varchar not null,
    pods bigint not null,
    devices bigint not null
);

-- One row per pod and GPU resource that it asks for.
create table pod_device (
    cluster varchar not null,
    workload_uid varchar not null,
    pod_uid varchar not null,
    resource varchar not null,
    devices bigint not null
);

-- One row per node, GPU resource and stretch in which nothing of it changes; replicas: shares of a card.
create table node_device (
    cluster varchar not null,
    node varchar not null,
    gpu_model varchar not null,
    resource varchar not null,
    replicas bigint not null,
    start_ms bigint not null,
    end_ms bigint,
    capacity bigint not null,
    allocatable bigint not null,
    schedulable boolean not null
);

-- One row per pod on a node and GPU resource that it holds, also of workloads whose record is set aside.
create view device_holding as
select
    holding.cluster,
    holding.node,
    holding.workload_uid,
    holding.pod_uid,
    pod_device.resource,
    pod_device.devices,
    holding.bound_ms,
    holding.released_ms,
    coalesce(workload.service_class, '') as service_class
from holding
inner join pod_device
    on holding.cluster = pod_device.cluster
    and holding.workload_uid = pod_device.workload_uid
    and holding.pod_uid = pod_device.pod_uid
left join workload
    on holding.cluster = workload.cluster and holding.workload_uid = workload.workload_uid;

-- One row per waiting span, part of its workload and GPU resource.
create view waiting_ask as
select
    workload_span.cluster,
    workload_span.workload_uid,
    workload_shape.part,
    workload_shape.resource,
    workload_shape.pods,
    workload_shape.devices,
    workload_span.start_ms,
    workload_span.end_ms
from workload_span
inner join workload_shape
    on workload_span.cluster = workload_shape.cluster
    and workload_span.workload_uid = workload_shape.workload_uid
where workload_span.waits;

-- One row per workload, part of it and GPU resource, with the instant of its submission.
create view asked_shape as
select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.submitted_ms,
    workload_shape.resource,
    workload_shape.pods,
    workload_shape.devices
from gpu_workload
inner join workload_shape
    on gpu_workload.cluster = workload_shape.cluster
    and gpu_workload.workload_uid = workload_shape.workload_uid;

-- One row per holding of GPUs with what the interactive rules ask of it, records set aside included.
create view class_holding as
select
    holding.cluster,
    holding.node,
    holding.gpu_model,
    holding.micro_gpus,
    holding.bound_ms,
    holding.released_ms,
    coalesce(workload.service_class, '') as service_class,
    coalesce(workload.user_name, '') as user_name
from holding
left join workload
    on holding.cluster = workload.cluster and holding.workload_uid = workload.workload_uid
where holding.micro_gpus is null or holding.micro_gpus > 0;

-- One row per workload, whole-GPU shape of its pods, and stretch of a node of its cluster with such GPUs.
create view workload_node as
select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.first_placed_ms,
    gpu_workload.gpu_model,
    workload_shape.devices,
    node_device.gpu_model as node_model,
    node_device.capacity,
    node_device.start_ms,
    node_device.end_ms
from gpu_workload
inner join workload_shape
    on gpu_workload.cluster = workload_shape.cluster
    and gpu_workload.workload_uid = workload_shape.workload_uid
inner join node_device
    on gpu_workload.cluster = node_device.cluster
    and workload_shape.resource = node_device.resource
where
    workload_shape.resource = 'nvidia.com/gpu'
    and node_device.capacity > 0;

-- The new tables are filled by cutting all lives anew.
delete from watermark
where job = 'lives';
