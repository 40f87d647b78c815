"""Entitled GPU-hours of a window."""

from analytics.fairness.shares import DIMENSIONS, LABELS, gpu_hours, gpu_time
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="entitled_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Entitled GPU-hours",
    definition=(
        "GPU-hours that an entity should have had in the window. Debt at the window's end = debt at its"
        " start + entitled - received - forgiven."
    ),
    source="definition of this product",
    sql=gpu_time("entitled"),
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    compute=gpu_hours,
    windowed=True,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
