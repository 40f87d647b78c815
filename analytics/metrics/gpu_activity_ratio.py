"""How busy GPUs were."""

from analytics.activity.ratio import utilisation
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="gpu_activity_ratio",
    unit=Unit.RATIO,
    title="GPU utilisation",
    definition=(
        "Activity of GPUs, averaged over the time in the window for which it was read, each device weighted"
        " by its part of a card; time that nobody read is left out. Apart by team, queue or class: of the"
        " GPUs that its pods held, without shared GPUs on which nobody knows whose the activity is."
    ),
    source="DCGM_FI_PROF_GR_ENGINE_ACTIVE, else DCGM_FI_DEV_GPU_UTIL / 100, of dcgm-exporter",
    sql="""\
-- One row per device and pod on it in the window; the part that no pod held has no workload's labels.
with model as (
    select
        cluster,
        node,
        arg_max(gpu_model, start_ms) as gpu_model
    from node_capacity
    where start_ms < $as_of_ms
    group by cluster, node
)

select
    seen.cluster,
    gpu_workload.queue,
    gpu_workload.service_class,
    gpu_workload.priority_class,
    gpu_workload.team,
    coalesce(nullif(model.gpu_model, ''), seen.gpu_model) as gpu_model,
    gpu_workload.gang_size,
    seen.node,
    seen.device,
    seen.seen,
    seen.active,
    seen.own_seen,
    seen.own_active
from gpu_seen($window_start_ms, $as_of_ms) as seen
left join gpu_workload
    on seen.cluster = gpu_workload.cluster and seen.workload_uid = gpu_workload.workload_uid
left join model
    on seen.cluster = model.cluster and seen.node = model.node
""",
    labels=("cluster", "gpu_model", "team"),
    dimensions=(*DIMENSIONS, "node", "device"),
    compute=utilisation,
    windowed=True,
    pages=(Page.CLUSTER,),
    rests_on_samples=True,
)
