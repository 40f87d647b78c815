"""Received GPU-hours of a window."""

from analytics.fairness.shares import DIMENSIONS, LABELS, gpu_hours, gpu_time
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="received_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Received GPU-hours",
    definition=(
        "GPU-hours that an entity held in the pool in the window, the counterpart of those entitled."
    ),
    source="definition of this product",
    sql=gpu_time("held"),
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    compute=gpu_hours,
    windowed=True,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
