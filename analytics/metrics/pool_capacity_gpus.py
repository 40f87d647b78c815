"""Capacity of the pool."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import POOL_DIMENSIONS, POOLS_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="pool_capacity_gpus",
    unit=Unit.GPUS,
    title="Capacity of the pool",
    definition=(
        "GPUs on the nodes of a pool that are schedulable or held by its entities, less those that others"
        " hold. Of nodes with several kinds of devices those count for which a queue of the pool has quota."
        " Two cohorts that share a flavor both count its free GPUs, so pools are not to be added up."
    ),
    source="definition of this product",
    sql=POOLS_NOW,
    labels=("cluster", "pool"),
    dimensions=POOL_DIMENSIONS,
    compute=gpus_of("capacity"),
    pages=(Page.FAIRNESS,),
    shared_labels=("pool",),
)
