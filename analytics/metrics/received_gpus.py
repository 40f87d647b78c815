"""GPUs that each entity of a pool holds."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import DIMENSIONS, LABELS, SHARES_NOW
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
    sql=SHARES_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("held"),
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
