"""What the entities of a pool borrow of nobody's quota."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import POOL_DIMENSIONS, POOLS_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="from_unassigned_gpus",
    unit=Unit.GPUS,
    title="Borrowed of nobody's quota",
    definition=(
        "GPUs that are borrowed and that no holder of quota lends: of the cohorts' own quota, or of capacity"
        " in no quota. Over a pool, lent = borrowed - this."
    ),
    source="definition of this product",
    sql=POOLS_NOW,
    labels=("cluster", "pool"),
    dimensions=POOL_DIMENSIONS,
    compute=gpus_of("from_unassigned"),
    pages=(Page.FAIRNESS,),
    shared_labels=("pool",),
)
