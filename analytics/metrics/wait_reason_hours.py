"""Time waited by reason."""

from analytics.why.depth import DIMENSIONS, LABELS, TIME_BY_REASON, hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="wait_reason_hours",
    unit=Unit.HOURS,
    title="Hours waited, by reason",
    definition=(
        "Hours that workloads spent waiting in the window, each with one primary reason at a time, as looks"
        " about once a minute found it (in history that came in at once, at some instants). Together they"
        " are all waiting there was. NOT_EVALUATED: waits that began and ended between two looks, and time"
        " in which nobody looked."
    ),
    source="schedulers' messages, and our search for places and quota; see `gpuledger why`",
    sql=TIME_BY_REASON,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=hours,
    windowed=True,
    adds=("waited_ms",),
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
