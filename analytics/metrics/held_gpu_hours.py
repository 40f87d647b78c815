"""GPU-time held, and what it was for."""

from analytics.wastage.asked import GPU_TIME, HELD_HOURS, TIME_ADDS, TIME_APART, WASTE_DIMENSIONS
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="held_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="GPU-hours held, by cause",
    definition=(
        "GPU-hours that pods held in the window, each second with exactly one cause: gang_hold, startup, "
        "startup_over_limit, draining, backoff, infra_lost, preempted_lost, crash_lost, idle, "
        "resident_idle, unknown or useful. The causes sum to the time held. A cause is the one known at "
        "the instant asked: time that a later crash turns into lost time moves from useful to crash_lost."
    ),
    source="definitions of this product; DCGM activity, pod and workload states",
    sql=GPU_TIME,
    labels=("cluster", "team", "cause"),
    dimensions=(*WASTE_DIMENSIONS, "cause"),
    compute=HELD_HOURS,
    windowed=True,
    adds=TIME_ADDS,
    apart=TIME_APART,
    pages=(Page.WASTE,),
    rests_on_samples=True,
)
