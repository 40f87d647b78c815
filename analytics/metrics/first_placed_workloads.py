"""How many workloads stand behind the started percentiles."""

from analytics.waits import FIRST_WAITS, WAIT, ended_count
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="first_placed_workloads",
    unit=Unit.WORKLOADS,
    title="First placed",
    definition="Workloads first placed in the window: how many stand behind the started percentiles.",
    source="definition of this product",
    sql=FIRST_WAITS,
    labels=("cluster", "queue", "service_class"),
    compute_frame=ended_count,
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
