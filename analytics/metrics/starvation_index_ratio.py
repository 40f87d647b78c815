"""Starvation index over the target."""

from analytics.waiting import WAITING_NOW, highest, target_ratio
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="starvation_index_ratio",
    unit=Unit.RATIO,
    title="Starvation index over target",
    definition=(
        "The greatest ratio of a current waiting episode to the wait target of its class; above 1 a promise"
        " is broken now."
    ),
    source="definition of this product",
    sql=WAITING_NOW,
    labels=("cluster", "queue", "service_class"),
    scraped=False,
    compute=highest(target_ratio),
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
