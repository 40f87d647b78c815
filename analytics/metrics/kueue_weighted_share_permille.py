"""Kueue's own measure of fairness, beside ours."""

from analytics.fairness.kueue_shares import TERMS_AND_USES, weighted_shares
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="kueue_weighted_share_permille",
    unit=Unit.PERMILLE,
    title="Kueue's weighted share",
    definition=(
        "What Kueue's fair sharing compares: of the resources that a queue borrows, whichever, the largest"
        " part of what its cohort can lend, in thousandths, by the weight of the queue. It measures"
        " borrowing, not use, and counts quota reserved, not GPUs held. The queue's status shows it rounded"
        " up. Undefined where a queue of weight 0 borrows; Kueue writes the largest int64 there."
    ),
    source="Kueue fair_sharing.go, KEP-1714",
    sql=TERMS_AND_USES,
    labels=("cluster", "queue"),
    dimensions=("cluster", "queue"),
    compute=weighted_shares,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue",),
    filters_itself=True,
)
