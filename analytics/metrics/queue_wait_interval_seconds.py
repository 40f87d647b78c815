"""Between which waits the percentiles of the queue wait lie."""

from analytics.waits import FIRST_WAITS, WAIT, wait_intervals
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_wait_interval_seconds",
    unit=Unit.SECONDS,
    title="Queue wait, 95 % confidence",
    definition=(
        "Between which waits the censored percentiles of the queue wait lie with 95 % confidence, bound"
        " `lower` and `upper`: Greenwood's variance on the scale log(-log S). Where few wait or were placed"
        " it is wide. A bound that the curve does not reach is a lower bound, the longest wait observed."
    ),
    source="Greenwood 1926; Kalbfleisch and Prentice 1980; Brookmeyer and Crowley 1982",
    sql=FIRST_WAITS,
    labels=("cluster", "queue", "service_class"),
    extra_labels=("quantile", "bound"),
    compute_frame=wait_intervals,
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    # To be asked where a percentile rests on few; six more series for each would drown the others.
    exported=False,
    shared_labels=("queue",),
)
