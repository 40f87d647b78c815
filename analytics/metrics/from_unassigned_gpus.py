"""What the entities of a pool borrow of nobody's quota."""

from analytics.fairness.shares import POOL_DIMENSIONS, pools_now
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
    sql=pools_now("from_unassigned"),
    labels=("cluster", "pool"),
    dimensions=POOL_DIMENSIONS,
    pages=(Page.FAIRNESS,),
    shared_labels=("pool",),
)
