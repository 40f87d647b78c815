"""Capacity without quota."""

from analytics.fairness.shares import POOL_DIMENSIONS, pools_now
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
    sql=pools_now("without_quota"),
    labels=("cluster", "pool"),
    dimensions=POOL_DIMENSIONS,
    pages=(Page.FAIRNESS,),
    shared_labels=("pool",),
)
