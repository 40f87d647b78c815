"""GPU-hours wasted by their holder."""

from analytics.wastage.asked import GPU_TIME, TIME_ADDS, TIME_APART, WASTE_DIMENSIONS, WASTED_HOURS
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="wasted_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="GPU-hours wasted by their holder",
    definition=(
        "GPU-hours held in the window that their holder could have spared: crash_lost at its low end, "
        "backoff, startup_over_limit, idle, and resident_idle unless the policy exempts a serving "
        "workload. Losses to infrastructure, preemption and incomplete gangs are not in it. A lower bound "
        "where the activity of some time is unknown."
    ),
    source="definitions of this product",
    sql=GPU_TIME,
    labels=("cluster", "team"),
    dimensions=WASTE_DIMENSIONS,
    compute=WASTED_HOURS,
    windowed=True,
    adds=TIME_ADDS,
    apart=TIME_APART,
    pages=(Page.WASTE,),
    rests_on_samples=True,
)
