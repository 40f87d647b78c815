"""Waiting workloads past their target."""

from analytics.waiting import WAITING_NOW, counted, target_ratio
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="past_target_workloads",
    unit=Unit.WORKLOADS,
    title="Waiting past the target",
    definition="Workloads whose current waiting episode is longer than the wait target of their class.",
    source="definition of this product",
    sql=WAITING_NOW,
    labels=("cluster", "queue", "service_class"),
    compute=counted(lambda row, policy: target_ratio(row, policy) > 1),
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
