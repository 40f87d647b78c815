"""What queue waits are made of: quota, checks and placing."""

from analytics.waits import WAITED_BY_COMPONENT, components
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="queue_wait_component_seconds",
    unit=Unit.SECONDS,
    title="Queue wait by component",
    definition=(
        "Seconds that workloads waited in the window for their first placement, all together, by what they"
        " waited for: quota (queued), checks (quota reserved, admission checks pending) or placing"
        " (admitted, the minimum members not all bound). The components sum to the queue wait gathered in"
        " the window."
    ),
    source="Kueue's conditions QuotaReserved and Admitted, PodScheduled of the minimum members",
    sql=WAITED_BY_COMPONENT,
    labels=("cluster", "queue", "service_class"),
    dimensions=DIMENSIONS,
    extra_labels=("component",),
    compute=components,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
    adds=("quota_ms", "checks_ms", "placing_ms"),
)
