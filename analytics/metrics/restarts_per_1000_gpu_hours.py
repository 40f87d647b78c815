"""How often work begins anew, for the GPU-time that it holds."""

from analytics.rates import ADDS, DONE, per_1000_gpu_hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="restarts_per_1000_gpu_hours",
    unit=Unit.PER_1000_GPU_HOURS,
    title="Restarts per 1,000 GPU-hours",
    definition=(
        "Attempts in the window that are not their workload's first, and further runs of a pod within its"
        " attempt, over the GPU-hours held in the window, times 1,000. Undefined where a share of a card is"
        " not known."
    ),
    source="definition of this product",
    sql=DONE,
    labels=("cluster", "service_class"),
    compute=per_1000_gpu_hours("restarts"),
    windowed=True,
    pages=(Page.QUEUES,),
    adds=ADDS,
)
