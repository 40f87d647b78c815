"""The share of the workloads that waited whose owner gave up."""

from analytics.cancelled import ADDS, NOBODY, UNPLACED
from analytics.evaluate import share
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="cancelled_while_waiting_ratio",
    unit=Unit.RATIO,
    title="Share cancelled while waiting",
    definition=(
        "Of the workloads that waited unplaced in some part of the window, the share that ended in it"
        " without ever having been placed. The censored percentiles take these waits as cut off for reasons"
        " that have nothing to do with the wait; the larger the share, the less that holds."
    ),
    source="definition of this product",
    sql=UNPLACED,
    labels=("cluster", "queue", "service_class"),
    scraped=False,
    compute=share(NOBODY, of="workloads"),
    adds=ADDS,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
