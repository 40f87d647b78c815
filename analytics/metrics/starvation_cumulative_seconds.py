"""All waiting of the workload behind the starvation index."""

from analytics.waiting import WAITING_NOW, cumulative_seconds, longest_waiting
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="starvation_cumulative_seconds",
    unit=Unit.SECONDS,
    title="Cumulative wait of the longest waiting",
    definition=(
        "All waiting so far, earlier episodes included, of the workload with the longest current waiting"
        " episode; its own threshold is a multiple of the target."
    ),
    source="definition of this product",
    sql=WAITING_NOW,
    labels=("cluster", "queue", "service_class"),
    compute=longest_waiting(cumulative_seconds),
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
