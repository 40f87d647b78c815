"""How long single pods wait after their workload was placed."""

from analytics.member_waits import MEMBER_WAITS, percentiles
from analytics.waits import EXTRA_LABELS
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="member_wait_seconds",
    unit=Unit.SECONDS,
    title="Member wait",
    definition=(
        "Percentiles of the waits of single pods, each counted as often as it asks GPUs: members lost after"
        " the placement of their workload, and later pods of a Job without a gang. They put no workload back"
        " into the queue and are in no percentile of queue waits. Estimator `censored` as for the queue"
        " wait; `started` is the smallest wait by which that share of the GPUs was placed."
    ),
    source="PodScheduled of single pods; Kaplan and Meier 1958, with weights",
    sql=MEMBER_WAITS,
    labels=("cluster", "queue", "service_class"),
    scraped=False,
    extra_labels=EXTRA_LABELS,
    compute=percentiles,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
