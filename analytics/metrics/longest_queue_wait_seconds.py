"""The longest queue wait that ended."""

from analytics.waits import FIRST_WAITS, WAIT, longest_ended
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="longest_queue_wait_seconds",
    unit=Unit.SECONDS,
    title="Longest queue wait",
    definition=(
        "The longest queue wait of the workloads first placed in the window; those that still wait are in the"
        " starvation index."
    ),
    source="definition of this product",
    sql=FIRST_WAITS,
    labels=("cluster", "queue", "service_class"),
    scraped=False,
    compute_frame=longest_ended,
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
