"""The questions behind "why does it wait": of some workloads of a cluster, just before an instant."""

import re
from typing import Final

_AMONG: Final = re.compile(r"(\S+) in \(select unnest\(\$(\w+)\)\)")


def of_few(sql: str) -> str:
    """
    The same question in words that are quick where few uids are asked about; with many they are slow.

    >>> of_few("where uid in (select unnest($uids))")
    'where list_contains($uids, uid)'
    """
    return _AMONG.sub(r"list_contains($\2, \1)", sql)


# One row per workload that was submitted. has_reasons: it asks GPUs and is counted, as the view gpu_workload
# has it, which costs twice as much to ask; only at such the stage `reasons` looks.
WORKLOADS: Final = """
select
    workload_uid as uid,
    kind,
    namespace,
    name,
    team,
    user_name as user,
    queue,
    priority_class,
    service_class,
    gang_size,
    requested_micro_gpus,
    submitted_ms,
    (requested_micro_gpus is null or requested_micro_gpus > 0) and skewed = '' and not is_copy as has_reasons
from workload
where
    cluster = $cluster
    and workload_uid in (select unnest($uids))
    and submitted_ms < $as_of_ms
order by submitted_ms, workload_uid
"""

# One row per span of these workloads that had begun, in the order of time.
SPANS: Final = """
select workload_uid as of_uid, state, reason as word, start_ms, end_ms
from span
where cluster = $cluster and workload_uid in (select unnest($uids)) and start_ms < $as_of_ms
order by start_ms, coalesce(end_ms, 9223372036854775807)
"""

# One row per object that belongs to one of the workloads.
MEMBERS: Final = """
select workload_uid as of_uid, object_uid as uid, kind
from member
where cluster = $cluster and workload_uid in (select unnest($uids))
order by workload_uid, object_uid
"""

# One row per member: whether it was bound by then, and whether it is over.
ENDS: Final = """
select
    uid,
    count(*) filter (where moment = 'bound') > 0 as bound,
    count(*) filter (where moment in ('ended', 'gone')) > 0 as ended
from transition
where
    cluster = $cluster
    and at_ms < $as_of_ms
    and moment in ('created', 'bound', 'ended', 'gone')
    and uid in (select unnest($members))
group by uid
"""

# One row per pod, with its gates, and per Kueue Workload: what it says of itself, as JSON.
BODIES: Final = """
select
    uid,
    kind,
    max(from_ms) as from_ms,
    arg_max(case kind when 'Pod' then body::json ->> '$.gates' else body end, from_ms) as body
from description
where
    cluster = $cluster
    and kind in ('Pod', 'Workload')
    and from_ms < $as_of_ms
    and uid in (select unnest($members))
group by uid, kind
"""

# One row per text that was written of a member, in order of time.
SAID: Final = """
with texts as (
    select uid, subject as word, detail as text, reason, at_ms
    from transition
    where
        cluster = $cluster
        and moment = 'condition'
        and state = 'False'
        and subject in ('PodScheduled', 'QuotaReserved')
        and detail != ''
        and at_ms < $as_of_ms
        and uid in (select unnest($members))
    union all
    select regarding_uid as uid, reason as word, note as text, reason, last_ms as at_ms
    from event_sighting
    where
        cluster = $cluster
        and last_ms < $as_of_ms
        and last_ms >= $first_ms
        and list_contains($words, reason)
        and regarding_uid in (select unnest($members))
)

select distinct uid, word, text, reason, at_ms
from texts
order by at_ms, uid, word, text
"""

# One row per part of a workload and resource: so many pods, each of which asks so many devices.
SHAPES: Final = """
select
    workload_uid as of_uid,
    part,
    resource,
    pods,
    devices,
    coalesce(wants, '') as wants,
    coalesce(others, '') as others
from workload_shape
where cluster = $cluster and workload_uid in (select unnest($uids))
order by workload_uid, part, resource
"""

# One row per pod and resource that it asks.
ASKS: Final = """
select
    workload_uid as of_uid,
    pod_uid,
    resource,
    devices,
    coalesce(wants, '') as wants,
    coalesce(others, '') as others
from pod_device
where cluster = $cluster and workload_uid in (select unnest($uids))
order by workload_uid, pod_uid, resource
"""

# One row per node and resource that it offers.
NODES: Final = """
select
    node,
    resource,
    capacity,
    allocatable,
    schedulable,
    coalesce(labels, '{}') as labels,
    coalesce(taints, '[]') as taints,
    coalesce(others, '') as others
from node_device
where cluster = $cluster and start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true)
order by node, resource
"""

# One row per workload, node and resource: what it holds there, and since when.
HOLDS: Final = """
select
    workload_uid,
    node,
    resource,
    sum(devices)::bigint as devices,
    min(bound_ms) as since_ms
from device_holding
where
    cluster = $cluster
    and open_until_ms >= $as_of_ms
    and bound_ms < $as_of_ms
    and coalesce(released_ms >= $as_of_ms, true)
group by workload_uid, node, resource
order by workload_uid, node, resource
"""

# One row per node and workload whose pods hold GPUs there, and one with an empty uid for all pods without:
# pods, what they ask of CPU in thousandths, of memory, and of all else as JSON by pod; untold: of how many of
# them nobody tells.
BESIDE: Final = """
select
    node,
    case when micro_gpus = 0 then '' else workload_uid end as holder_uid,
    count(*) as pods,
    count(*) filter (where milli_cpus is null or memory_bytes is null) as untold,
    coalesce(sum(milli_cpus), 0) as cpu,
    coalesce(sum(memory_bytes), 0) as memory,
    list(other_asks) filter (where coalesce(other_asks, '') not in ('', '{}')) as other_asks
from holding
where
    cluster = $cluster
    and open_until_ms >= $as_of_ms
    and bound_ms < $as_of_ms
    and coalesce(released_ms >= $as_of_ms, true)
    and node != ''
group by node, holder_uid
order by node, holder_uid
"""

# One row per queue, resource and flavor in its quota, with what its pods want of a node.
FLAVORS: Final = """
select queue, resource, flavor, wants
from queue_flavor
where cluster = $cluster and start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true)
order by queue, resource, flavor
"""

# One row per version of a queue, flavor, quota or priority class, oldest first: what it says, as JSON. It
# asks for no instant, so that it is read once between two commits.
QUEUES: Final = """
select
    object_state.uid,
    object_state.kind,
    object_state.namespace,
    object_state.name,
    object_state.gone_ms,
    description.from_ms,
    description.body
from object_state
inner join description
    on object_state.cluster = description.cluster and object_state.uid = description.uid
where
    object_state.cluster = $cluster
    and object_state.kind in (
        'ClusterQueue', 'LocalQueue', 'ResourceFlavor', 'VolcanoQueue', 'KaiQueue', 'PriorityClass',
        'WorkloadPriorityClass', 'ResourceQuota'
    )
    and description.kind in (
        'ClusterQueue', 'LocalQueue', 'ResourceFlavor', 'VolcanoQueue', 'KaiQueue', 'PriorityClass',
        'WorkloadPriorityClass', 'ResourceQuota'
    )
order by description.from_ms, object_state.uid
"""

# One row per workload with a name that the viewer may see or not: who it is.
NAMES: Final = """
select workload_uid as uid, namespace, name, team, user_name as user
from workload
where cluster = $cluster and workload_uid in (select unnest($uids))
order by workload_uid
"""

# One row per member that a text or a scheduler names, with the workload that it belongs to.
OWNERS: Final = """
select object_uid as uid, workload_uid as of_uid
from member
where cluster = $cluster and object_uid in (select unnest($uids))
order by object_uid
"""

# One row per workload that waits for quota, of a queue where one is named: what Kueue has of it, as JSON.
WAITING_FOR_QUOTA: Final = """
with queued as (
    select workload.workload_uid, workload.namespace, workload.queue, workload.submitted_ms
    from workload
    inner join span
        on workload.cluster = span.cluster
        and workload.workload_uid = span.workload_uid
        and workload.open_until_ms = span.open_until_ms
    where
        workload.cluster = $cluster
        and workload.open_until_ms >= $as_of_ms
        and ($queue is null or workload.queue = $queue)
        and span.state = 'queued'
        and span.start_ms < $as_of_ms
        and coalesce(span.end_ms >= $as_of_ms, true)
)

select
    queued.workload_uid as uid,
    queued.namespace,
    queued.queue,
    queued.submitted_ms,
    arg_max(description.body, description.from_ms) as body
from queued
inner join member
    on queued.workload_uid = member.workload_uid and member.cluster = $cluster and member.kind = 'Workload'
inner join description
    on member.object_uid = description.uid and description.cluster = $cluster
where description.from_ms < $as_of_ms
group by queued.workload_uid, queued.namespace, queued.queue, queued.submitted_ms
order by queued.submitted_ms, queued.workload_uid
"""

# One row per reservation of quota in a queue that began in [$since_ms, $as_of_ms): flavor and resources.
ADMITTED: Final = """
select start_ms, flavor, resources
from quota_used
where
    cluster = $cluster
    and queue = $queue
    and open_until_ms >= $since_ms
    and start_ms >= $since_ms
    and start_ms < $as_of_ms
order by start_ms
"""

# One row per workload and flavor: the quota that it has reserved, as JSON in thousandths, and since when.
RESERVED: Final = """
select workload_uid as uid, queue, flavor, resources, min(start_ms) as since_ms
from quota_used
where
    cluster = $cluster
    and open_until_ms >= $as_of_ms
    and start_ms < $as_of_ms
    and coalesce(end_ms >= $as_of_ms, true)
group by workload_uid, queue, flavor, resources
order by workload_uid, flavor
"""

# One row per queue and resource: devices that its workloads hold.
HELD_BY_QUEUE: Final = """
select workload.queue, device_holding.resource, sum(device_holding.devices)::bigint as devices
from device_holding
inner join workload
    on device_holding.cluster = workload.cluster
    and device_holding.workload_uid = workload.workload_uid
    and device_holding.open_until_ms = workload.open_until_ms
where
    device_holding.cluster = $cluster
    and device_holding.open_until_ms >= $as_of_ms
    and workload.queue != ''
    and device_holding.bound_ms < $as_of_ms
    and coalesce(device_holding.released_ms >= $as_of_ms, true)
group by workload.queue, device_holding.resource
order by workload.queue, device_holding.resource
"""

# One row per resource: what the pods of a namespace ask that are there and not over, on a node or not.
ASKED_IN_NAMESPACE: Final = """
with asked as (
    select pod_device.pod_uid, pod_device.resource, pod_device.devices
    from pod_device
    inner join workload
        on pod_device.cluster = workload.cluster
        and pod_device.workload_uid = workload.workload_uid
        and pod_device.open_until_ms = workload.open_until_ms
    where
        pod_device.cluster = $cluster
        and workload.namespace = $namespace
        and pod_device.open_until_ms >= $as_of_ms
),

there as (
    select uid
    from transition
    where
        cluster = $cluster
        and at_ms < $as_of_ms
        and moment in ('created', 'bound', 'ended', 'gone')
        and uid in (select pod_uid from asked)
    group by uid
    having count(*) filter (where moment in ('ended', 'gone')) = 0
)

select resource, sum(devices)::bigint as devices
from asked
where pod_uid in (select uid from there)
group by resource
order by resource
"""

# One row per workload of a namespace that holds devices: how many, on which nodes, and since when.
HELD_IN_NAMESPACE: Final = """
select
    device_holding.workload_uid as uid,
    sum(device_holding.devices)::bigint as devices,
    list(distinct device_holding.node order by device_holding.node) as nodes,
    min(device_holding.bound_ms) as since_ms
from device_holding
inner join workload
    on device_holding.cluster = workload.cluster and device_holding.workload_uid = workload.workload_uid
where
    device_holding.cluster = $cluster
    and workload.namespace = $namespace
    and device_holding.bound_ms < $as_of_ms
    and device_holding.open_until_ms >= $as_of_ms
    and coalesce(device_holding.released_ms >= $as_of_ms, true)
group by device_holding.workload_uid
order by device_holding.workload_uid
"""
