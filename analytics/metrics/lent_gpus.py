"""Lent GPUs of each entity of a pool."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import DIMENSIONS, LABELS, QUOTAS_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="lent_gpus",
    unit=Unit.GPUS,
    title="Lent GPUs",
    definition=(
        "Unused quota that others of the pool use now: what they borrow, shared among those with unused"
        " quota in proportion to it, within their lending limits. A note, not a term of the entitlement."
    ),
    source="definition of this product",
    sql=QUOTAS_NOW,
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    compute=gpus_of("lent"),
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
