"""Queue depth, in workloads."""

from analytics.waiting import WAITING_NOW, counted
from analytics.waiting_stretches import WAITING_STRETCHES
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_depth_workloads",
    unit=Unit.WORKLOADS,
    title="Queue depth",
    definition="Workloads that wait for quota, checks or placement now; 0 for a live queue without one.",
    source="Kueue pending workloads, plus those admitted and not yet placed",
    sql=WAITING_NOW,
    stretches=WAITING_STRETCHES,
    stretch_sums=("workloads",),
    labels=("cluster", "queue", "service_class", "team"),
    compute=counted(lambda _row, _policy: True),
    pages=(Page.HOME, Page.QUEUES),
    shared_labels=("queue",),
)
