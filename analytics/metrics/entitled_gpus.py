"""GPUs that each entity of a pool should have."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import DIMENSIONS, LABELS, SHARES_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="entitled_gpus",
    unit=Unit.GPUS,
    title="Entitled GPUs",
    definition=(
        "What a holder of quota should have now: its demand within its quota, then its share of what others"
        " leave, by weighted max-min within the limits of borrowing and lending, level by level of its"
        " cohorts. Teams that share a queue split it by the weights of their local queues."
    ),
    source="weighted max-min fairness; Kueue cohorts, quotas and weights",
    sql=SHARES_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("entitled"),
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
