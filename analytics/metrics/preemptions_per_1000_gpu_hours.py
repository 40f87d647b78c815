"""How often work is preempted for the GPU-time that it holds."""

from analytics.rates import ADDS, DONE, per_1000_gpu_hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="preemptions_per_1000_gpu_hours",
    unit=Unit.PER_1000_GPU_HOURS,
    title="Preemptions per 1,000 GPU-hours",
    definition=(
        "Preemptions in the window over the GPU-hours held in it, times 1,000, by class of the victim."
        " Undefined where a share of a card is not known."
    ),
    source="definition of this product",
    sql=DONE,
    labels=("cluster", "service_class"),
    compute=per_1000_gpu_hours("preemptions"),
    windowed=True,
    pages=(Page.QUEUES,),
    adds=ADDS,
)
