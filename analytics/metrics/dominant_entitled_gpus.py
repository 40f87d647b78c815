"""What each queue should have of the GPUs where CPUs and memory are shared with them."""

from analytics.fairness.dominant import TERMS_USES_AND_ASKS, dominant_shares
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="dominant_entitled_gpus",
    unit=Unit.GPUS,
    title="Entitled GPUs, with CPUs and memory",
    definition=(
        "The GPU part of the allocation by dominant resource fairness, over all resources that Kueue gives"
        " out in the same flavor as GPUs: first the guaranteed part of each, the smaller of demand and quota;"
        " then the surpluses by progressive filling, so that the largest share that a queue gets of any"
        " resource rises in step with its weight, level by level in a tree of cohorts. Demand is quota"
        " reserved and what waiting workloads ask, in the first flavor of their queue whose quotas could ever"
        " hold them; capacity is what quotas promise. Where GPUs are given out alone it is max-min fairness"
        " over quotas. Queues of whole cards only. The ledger of debts rests on entitled_gpus, which counts"
        " GPUs alone."
    ),
    source="Ghodsi et al., Dominant Resource Fairness, NSDI 2011; Kueue quotas, cohorts and weights",
    sql=TERMS_USES_AND_ASKS,
    labels=("cluster", "pool", "queue"),
    scraped=False,
    dimensions=("cluster", "pool", "queue"),
    compute=dominant_shares,
    pages=(Page.FAIRNESS,),
    # The pool is a flavor, which tells of nobody.
    open_labels=("pool",),
    shared_labels=("queue",),
    filters_itself=True,
)
