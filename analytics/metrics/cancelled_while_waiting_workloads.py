"""Workloads whose owner gave up before they were placed."""

from analytics.cancelled import ADDS, UNPLACED
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="cancelled_while_waiting_workloads",
    unit=Unit.WORKLOADS,
    title="Cancelled while waiting",
    definition=(
        "Workloads that ended in the window without ever having been placed, and were not held at the end;"
        " the censored percentiles count their wait as cut off, not as over."
    ),
    source="definition of this product",
    sql=UNPLACED,
    labels=("cluster", "queue", "service_class"),
    scraped=False,
    adds=ADDS,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
