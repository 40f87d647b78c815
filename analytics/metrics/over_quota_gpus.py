"""GPUs over quota of each entity of a pool."""

from analytics.fairness.shares import DIMENSIONS, LABELS, quotas_now
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="over_quota_gpus",
    unit=Unit.GPUS,
    title="GPUs over quota",
    definition=(
        "GPUs held above the own quota with nobody to borrow from: outside any cohort, in a namespace with"
        " a ResourceQuota, or in a flavor in which the queue has lost its quota."
    ),
    source="definition of this product",
    sql=quotas_now("over_quota"),
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
