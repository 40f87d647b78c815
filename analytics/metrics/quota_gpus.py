"""Quota of each entity of a pool."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import DIMENSIONS, LABELS, QUOTAS_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="quota_gpus",
    unit=Unit.GPUS,
    title="Quota",
    definition=(
        "GPUs in the quota of a holder in a pool: Kueue's nominal quota, what a Volcano queue deserves, a"
        " namespace's ResourceQuota. One quota for several GPU models counts where it is used, then where"
        " more is asked, the rest by what the nodes offer. A team without a quota has 0."
    ),
    source="Kueue nominalQuota, Volcano deserved, ResourceQuota requests",
    sql=QUOTAS_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("quota"),
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
