"""GPUs that each entity of a pool holds."""

from analytics.fairness.shares import DIMENSIONS, LABELS, shares_now
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="received_gpus",
    unit=Unit.GPUS,
    title="Received GPUs",
    definition=(
        "GPUs that the pods of an entity hold in a pool, those of terminating pods too; the counterpart of"
        " what it is entitled to."
    ),
    source="definition of this product",
    sql=shares_now("held"),
    labels=LABELS,
    dimensions=DIMENSIONS,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
