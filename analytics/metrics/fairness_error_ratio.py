"""Fairness error of a pool."""

from analytics.fairness.shares import POOL_DIMENSIONS, POOLS_NOW, one_pool
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="fairness_error_ratio",
    unit=Unit.RATIO,
    title="Fairness error",
    definition=(
        "The part of a pool's capacity that its entities should have now and do not: 0 is fair. Undefined"
        " without capacity, or where nobody is entitled to a GPU."
    ),
    source="Armada's fairness error",
    sql=POOLS_NOW,
    labels=("cluster", "pool"),
    dimensions=POOL_DIMENSIONS,
    compute=one_pool("error_ratio"),
    pages=(Page.FAIRNESS,),
    shared_labels=("pool",),
)
