"""How full the queue is, against its cap."""

from datetime import timedelta

from analytics.backpressure import DIMENSIONS, THEN_AND_NOW, part_of_cap
from domain.alert import AlertRule, Comparison, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_cap_ratio",
    unit=Unit.RATIO,
    title="Queue depth over its cap",
    definition=(
        "Waiting workloads over the cap of the queue depth, 500 (a setting); from 85 % (a setting) on it is"
        " time to slow the submitters down. Above 1 the cap is passed."
    ),
    source="policy of the site",
    sql=THEN_AND_NOW,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=part_of_cap,
    window=timedelta(hours=1),
    pages=(Page.POLICY,),
    alerts=(
        AlertRule(
            name="GpuQueueExploding",
            summary="the queues of {cluster} are at {value} of the cap on waiting workloads",
            description=(
                "The number of waiting workloads is {value} of the cap; from {limit} on it is time to slow"
                " the submitters down."
            ),
            link="policy",
            limit=Limit(setting="queue_cap_warn_ratio"),
            comparison=Comparison.AT_LEAST,
            identity=("cluster",),
        ),
    ),
    shared_labels=("queue",),
)
