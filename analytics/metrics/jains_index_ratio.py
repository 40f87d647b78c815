"""Jain's index of a pool."""

from analytics.fairness.shares import POOL_DIMENSIONS, POOLS_NOW, one_pool
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="jains_index_ratio",
    unit=Unit.RATIO,
    title="Jain's index",
    definition=(
        "How equal what entities hold is to what they should have, over those with demand: 1 is fair, 1/n"
        " is one for all. Undefined without capacity, or where nobody is entitled to or holds a GPU."
    ),
    source="Jain, Chiu and Hawe 1984",
    sql=POOLS_NOW,
    labels=("cluster", "pool"),
    dimensions=POOL_DIMENSIONS,
    compute=one_pool("jain"),
    pages=(Page.FAIRNESS,),
    low_is_bad=True,
    shared_labels=("pool",),
)
