"""How soon the queue reaches its cap."""

from datetime import timedelta

from analytics.backpressure import DIMENSIONS, THEN_AND_NOW, time_to_cap
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_cap_seconds",
    unit=Unit.SECONDS,
    title="Time to the queue's cap",
    definition=(
        "How long until as many workloads wait as the cap allows, if their number grows on as it did in the"
        " window; 0 where it is reached, undefined while the queue does not grow."
    ),
    source="policy of the site",
    sql=THEN_AND_NOW,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=time_to_cap,
    windowed=True,
    window=timedelta(hours=1),
    pages=(Page.POLICY,),
    shared_labels=("queue",),
)
