"""Work lost, at least."""

from analytics.wastage.asked import LOST, LOST_ADDS, WASTE_DIMENSIONS, lost_hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="work_lost_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Work lost, at least",
    definition=(
        "Running GPU-hours in the window that were surely lost when a run was cut short, by cause: "
        "crash_lost, preempted_lost, infra_lost. Since the last known checkpoint; without one, the "
        "assumed interval, and from the second failure on all of a short run. Time that was idle or "
        "unknown is not work and cannot be lost."
    ),
    source="definitions of this product; annotation gpuledger.io/last-checkpoint-time",
    sql=LOST,
    labels=("cluster", "team", "cause"),
    dimensions=(*WASTE_DIMENSIONS, "cause"),
    compute=lost_hours("low"),
    windowed=True,
    adds=LOST_ADDS,
    pages=(Page.WASTE,),
)
