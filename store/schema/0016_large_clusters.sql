-- What questions about large clusters would else read row by row: running totals of what was forgiven, so
-- that the ledger of a window rests on its two ends; and shapes of nodes apart from those who ask for them.

-- GPU-hours forgiven from the beginning of the account to start_ms.
alter table team_share_span add column opening_forgiven double default 0.0;

-- One row per pool, queue (whoever holds the quota), team and stretch.
create or replace view team_share as
select
    cluster,
    pool,
    entity as queue,
    team,
    gpu_model,
    start_ms,
    until_ms,
    demand,
    held,
    entitled,
    opening_debt,
    coalesce(opening_forgiven, 0.0) as opening_forgiven
from team_share_span;

-- The totals are filled by booking everything anew.
delete from watermark
where starts_with(job, 'fairness, ');

drop view workload_node;

-- One row per workload and whole-GPU shape of its pods.
create view whole_gpu_ask as
select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.first_placed_ms,
    gpu_workload.gpu_model,
    workload_shape.devices
from gpu_workload
inner join workload_shape
    on gpu_workload.cluster = workload_shape.cluster
    and gpu_workload.workload_uid = workload_shape.workload_uid
where workload_shape.resource = 'nvidia.com/gpu';

-- One row per node with whole GPUs and stretch in which nothing of it changes.
create view whole_gpu_node as
select cluster, node, gpu_model, capacity, start_ms, end_ms
from node_device
where resource = 'nvidia.com/gpu' and capacity > 0;
