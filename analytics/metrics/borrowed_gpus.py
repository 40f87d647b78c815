"""Borrowed GPUs of each entity of a pool."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import DIMENSIONS, LABELS, QUOTAS_NOW
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
    sql=QUOTAS_NOW,
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    compute=gpus_of("borrowed"),
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
