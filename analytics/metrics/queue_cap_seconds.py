"""How soon the queue reaches its cap."""

from datetime import timedelta

from analytics.backpressure import DIMENSIONS, THEN_AND_NOW, time_to_cap
from domain.alert import AlertRule, Comparison, Limit
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
    alerts=(
        AlertRule(
            name="GpuQueueCapSoon",
            summary="the queues of {cluster} reach their cap in {value}",
            description=(
                "If the number of waiting workloads grows on as it did in the last hour, the cap is reached"
                " in {value}; the limit is {limit}. Until then the submitters can be slowed down."
            ),
            link="policy",
            limit=Limit(times=1800.0),
            comparison=Comparison.BELOW,
            identity=("cluster",),
            hold=timedelta(minutes=5),
            window=timedelta(minutes=5),
            fine_if_undefined=True,
            inhibited_by=("GpuQueueExploding",),
        ),
    ),
    shared_labels=("queue",),
)
