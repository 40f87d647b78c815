-- What of a MIG card no instance covers, where the pods of what waits may go, and members lost alone.

-- Micro-GPU of a node's cards that are in nobody's instance; part of its capacity.
alter table node_span add column unpartitioned_micro_gpus bigint default 0;

-- The product as the node's label has it, with how its cards are cut; its labels and taints as JSON.
alter table node_device add column product varchar default '';
alter table node_device add column labels varchar default '{}';
alter table node_device add column taints varchar default '[]';

-- What pods want of a node, as JSON; '' where any untainted node will do.
alter table workload_shape add column wants varchar default '';
alter table pod_device add column wants varchar default '';

-- The outcome of a member that was lost while the others of its attempt went on; since when that is known.
alter table holding add column cut varchar default '';
alter table holding add column cut_known_ms bigint;

-- One row per ClusterQueue, GPU resource and flavor in its quota, and stretch in which nothing of it changes:
-- what its pods want of a node, as JSON.
create table queue_flavor (
    cluster varchar not null,
    queue varchar not null,
    resource varchar not null,
    flavor varchar not null,
    wants varchar not null,
    start_ms bigint not null,
    end_ms bigint
);

-- One row per node and stretch of unchanged capacity.
create or replace view node_capacity as
select
    cluster,
    node,
    gpu_model,
    start_ms,
    end_ms,
    capacity_micro_gpus,
    allocatable_micro_gpus,
    coalesce(unpartitioned_micro_gpus, 0) as unpartitioned_micro_gpus,
    schedulable
from node_span;

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
    coalesce(workload.service_class, '') as service_class
from holding
inner join pod_device
    on holding.cluster = pod_device.cluster
    and holding.workload_uid = pod_device.workload_uid
    and holding.pod_uid = pod_device.pod_uid
left join workload
    on holding.cluster = workload.cluster and holding.workload_uid = workload.workload_uid;

-- One row per waiting span, part of its workload and GPU resource.
create or replace view waiting_ask as
select
    workload_span.cluster,
    workload_span.workload_uid,
    workload_span.queue,
    workload_shape.part,
    workload_shape.resource,
    workload_shape.pods,
    workload_shape.devices,
    coalesce(workload_shape.wants, '') as wants,
    workload_span.start_ms,
    workload_span.end_ms
from workload_span
inner join workload_shape
    on workload_span.cluster = workload_shape.cluster
    and workload_span.workload_uid = workload_shape.workload_uid
where workload_span.waits;

-- One row per flavor that a queue offers its workloads, and stretch of time.
create view offered_flavor as
select cluster, queue, resource, flavor, wants, start_ms, end_ms
from queue_flavor;

-- The new columns are filled by cutting all lives anew.
delete from watermark
where job = 'lives';
