"""Borrowed GPUs of each entity of a pool."""

from analytics.fairness.shares import DIMENSIONS, LABELS, quotas_now
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="borrowed_gpus",
    unit=Unit.GPUS,
    title="Borrowed GPUs",
    definition=(
        "GPUs held above the own quota where there is somebody to borrow from, or capacity in no quota."
        " A note, not a term of the entitlement."
    ),
    source="Kueue borrowing, summed from pods",
    sql=quotas_now("borrowed"),
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
