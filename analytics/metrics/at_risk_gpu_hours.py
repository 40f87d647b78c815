"""GPU-hours that would be lost if every run was cut now."""

from analytics.wastage.at_risk import RUNNING, gpu_hours_at_risk
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="at_risk_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="GPU-hours at risk",
    definition=(
        "GPU-hours of the pods that run now, each since its run began or since the last checkpoint that its"
        " workload published, whichever is later: what would be lost if all were cut now."
    ),
    source="annotation gpuledger.io/last-checkpoint-time; container states",
    sql=RUNNING,
    labels=("cluster", "team", "service_class"),
    dimensions=(*DIMENSIONS, "user_name"),
    compute=gpu_hours_at_risk,
    pages=(Page.WASTE, Page.POLICY),
)
