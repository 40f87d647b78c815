"""Capacity without quota."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import POOL_DIMENSIONS, POOLS_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="capacity_without_quota_gpus",
    unit=Unit.GPUS,
    title="Capacity without quota",
    definition=(
        "GPUs of a pool that are in nobody's quota and that its system can give nobody: a finding. It is 0"
        " where the system hands them out all the same, as Volcano does without capability."
    ),
    source="definition of this product",
    sql=POOLS_NOW,
    labels=("cluster", "pool"),
    dimensions=POOL_DIMENSIONS,
    compute=gpus_of("without_quota"),
    pages=(Page.FAIRNESS,),
    shared_labels=("pool",),
)
