"""Work lost, at most."""

from analytics.wastage.asked import LOST, LOST_ADDS, WASTE_DIMENSIONS, lost_hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="work_lost_at_most_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Work lost, at most",
    definition=(
        "The high end of the work lost: the same runs cut short, lost from their start where no "
        "checkpoint of theirs is known."
    ),
    source="definitions of this product; annotation gpuledger.io/last-checkpoint-time",
    sql=LOST,
    labels=("cluster", "team", "cause"),
    scraped=False,
    dimensions=(*WASTE_DIMENSIONS, "cause"),
    compute=lost_hours("at_most"),
    windowed=True,
    adds=LOST_ADDS,
    pages=(Page.WASTE,),
)
