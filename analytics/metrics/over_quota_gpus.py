"""GPUs over quota of each entity of a pool."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import DIMENSIONS, LABELS, QUOTAS_NOW
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
    sql=QUOTAS_NOW,
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    compute=gpus_of("over_quota"),
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
