-- What happened to GPUs: transitions of the objects of our own that stand for them.

-- One row per thing that happened to a GPU, or to a node's driver (device ''), with the pod that was on it
-- ('' where none was named). earliest_ms 0: it happened before anybody looked. xid is 0 for other kinds.
create view gpu_fault as
with model as (
    select cluster, node, arg_max(gpu_model, start_ms) as gpu_model
    from node_span
    group by cluster, node
)

select
    told.cluster,
    device.namespace as node,
    told.subject as device,
    coalesce(model.gpu_model, '') as gpu_model,
    told.state as kind,
    case when told.state = 'xid' then told.amount else 0 end as xid,
    told.detail as words,
    told.at_ms,
    told.earliest_ms,
    coalesce(on_pod.uid, '') as pod_uid,
    coalesce(member.workload_uid, '') as workload_uid
from transition as told
inner join object_state as device on told.cluster = device.cluster and told.uid = device.uid
left join model on told.cluster = model.cluster and device.namespace = model.node
left join transition as on_pod
    on told.cluster = on_pod.cluster
    and on_pod.moment = 'gpu_fault'
    and on_pod.kind = 'Pod'
    and told.subject = on_pod.subject
    and told.state = on_pod.state
    and told.amount = on_pod.amount
    and told.at_ms = on_pod.at_ms
left join member on told.cluster = member.cluster and on_pod.uid = member.object_uid
where told.moment = 'gpu_fault' and told.kind = 'GPU';
