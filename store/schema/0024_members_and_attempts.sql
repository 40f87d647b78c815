-- Members that wait by themselves, and how often workloads began anew.

-- One row per wait of a single pod, with the dimensions of its workload; placed: it ended in a binding.
create view member_waiting as
select
    gpu_workload.*,
    member_wait.pod_uid,
    member_wait.micro_gpus,
    member_wait.start_ms,
    member_wait.end_ms,
    coalesce(
        exists (
            select 1 from holding
            where
                holding.cluster = member_wait.cluster
                and holding.workload_uid = member_wait.workload_uid
                and holding.pod_uid = member_wait.pod_uid
                and holding.bound_ms = member_wait.end_ms
        ),
        false
    ) as placed
from member_wait
inner join gpu_workload
    on member_wait.cluster = gpu_workload.cluster and member_wait.workload_uid = gpu_workload.workload_uid;

-- One row per preemption that a workload went through, with when it was preempted before, null the first
-- time; missed: how many more there were that only a counter tells of.
create view workload_preemption as
select
    * exclude (preempted),
    lag(at_ms) over (partition by cluster, workload_uid order by at_ms) as before_ms
from workload_eviction
where preempted;

-- What Kueue's own fair sharing counts: every resource, GPUs or not, in thousandths of its unit.

-- One row per ClusterQueue or Cohort and stretch in which nothing of it changes; parent: its cohort, '' for
-- none. quotas is JSON: flavor, resource, nominal, lending limit and borrowing limit of each, null for none.
create table kueue_terms (
    cluster varchar not null,
    kind varchar not null,
    name varchar not null,
    parent varchar not null,
    weight_milli bigint not null,
    quotas varchar not null,
    start_ms bigint not null,
    end_ms bigint
);

-- One row per workload, flavor and stretch of reserved quota; resources is JSON, thousandths by resource.
create table quota_use (
    cluster varchar not null,
    workload_uid varchar not null,
    queue varchar not null,
    flavor varchar not null,
    resources varchar not null,
    start_ms bigint not null,
    end_ms bigint
);

-- One row per ClusterQueue or Cohort and stretch.
create view kueue_term as
select cluster, kind, name, parent, weight_milli, quotas, start_ms, end_ms
from kueue_terms;

-- One row per workload, flavor and stretch of reserved quota.
create view quota_used as
select cluster, workload_uid, queue, flavor, resources, start_ms, end_ms
from quota_use;

-- The new tables are filled by cutting all lives anew.
delete from watermark
where job = 'lives';

-- One row per workload that asks no GPU, with its minimum members.
create view plain_workload as
select cluster, workload_uid, submitted_ms, greatest(gang_size, 1) as pods
from workload
where requested_micro_gpus = 0;

-- One row per node that its labels call a spot or preemptible machine, in the words of Karpenter, EKS, GKE
-- and AKS.
create view spot_node as
select distinct cluster, node
from node_device
where
    regexp_matches(
        labels,
        '"(karpenter\.sh/capacity-type|eks\.amazonaws\.com/capacityType)": ?"(spot|SPOT)"'
    )
    or regexp_matches(labels, '"cloud\.google\.com/gke-(spot|preemptible)": ?"true"')
    or regexp_matches(labels, '"kubernetes\.azure\.com/scalesetpriority": ?"spot"');

-- One row per node and GPU model that it had, with its kind of capacity and since when it is known.
create view node_kind as
select
    node_span.cluster,
    node_span.node,
    node_span.gpu_model,
    case when spot_node.node is null then 'regular' else 'spot' end as capacity_type,
    min(node_span.start_ms) as start_ms
from node_span
left join spot_node on node_span.cluster = spot_node.cluster and node_span.node = spot_node.node
group by node_span.cluster, node_span.node, node_span.gpu_model, spot_node.node;

-- One row per node and change: joined, left, or lost with pods on it. Nodes that were there when the first of
-- their cluster were read did not join.
create view node_change as
with ordered as (
    select
        *,
        min(start_ms) over (partition by cluster) as first_ms,
        lag(end_ms) over (partition by cluster, node order by start_ms) as before_ms,
        lead(start_ms) over (partition by cluster, node order by start_ms) as next_ms
    from node_span
)

select cluster, node, gpu_model, 'joined' as change, start_ms as at_ms
from ordered
where start_ms > first_ms and coalesce(before_ms < start_ms, true)
union all
select
    cluster,
    node,
    gpu_model,
    case
        when exists (
            select 1 from holding
            where
                holding.cluster = ordered.cluster
                and holding.node = ordered.node
                and holding.bound_ms < ordered.end_ms
                and coalesce(holding.released_ms >= ordered.end_ms, true)
        ) then 'lost'
        else 'left'
    end as change,
    end_ms as at_ms
from ordered
where end_ms is not null and coalesce(next_ms > end_ms, true);

-- One row per reading of the memory of a device that a pod held, with the dimensions of the pod's workload.
-- A shared device whose exporter tells nothing of single processes is left out: its memory is nobody's alone.
create view device_memory as
select
    gpu_holding.* exclude (micro_gpus),
    gpu_sample.device,
    gpu_sample.micro_gpus,
    gpu_sample.at_ms,
    gpu_sample.step_ms,
    gpu_sample.memory_mib,
    gpu_sample.memory_total_mib
from gpu_sample
inner join gpu_holding
    on gpu_sample.cluster = gpu_holding.cluster
    and gpu_sample.node = gpu_holding.node
    and gpu_sample.namespace = gpu_holding.namespace
    and gpu_sample.pod = gpu_holding.pod_name
    and gpu_sample.at_ms >= gpu_holding.bound_ms
    and gpu_sample.at_ms < coalesce(gpu_holding.released_ms, 9223372036854775807)
where gpu_sample.memory_mib is not null and (gpu_sample.shares = 0 or gpu_sample.per_process);
