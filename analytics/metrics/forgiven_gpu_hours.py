"""Forgiven GPU-hours of a window."""

from analytics.fairness.shares import DIMENSIONS, FORGIVEN_AT_THE_ENDS, LABELS, forgiven
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="forgiven_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Forgiven GPU-hours",
    definition=(
        "Fairness debt that faded in the window, the integral of debt x ln 2 / half-life; negative where a"
        " debt to the cluster faded. Pools with different GPU models are not added."
    ),
    source="definition of this product",
    sql=FORGIVEN_AT_THE_ENDS,
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    compute=forgiven,
    windowed=True,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
