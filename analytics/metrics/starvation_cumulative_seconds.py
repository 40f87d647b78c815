"""All waiting of the workload behind the starvation index."""

from analytics.waiting import WAITING_NOW, cumulative_seconds, longest_waiting
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="starvation_cumulative_seconds",
    unit=Unit.SECONDS,
    title="Cumulative wait of the longest waiting",
    definition=(
        "All waiting so far, earlier episodes included, of the workload with the longest current waiting"
        " episode; its own threshold is a multiple of the target."
    ),
    source="definition of this product",
    sql=WAITING_NOW,
    labels=("cluster", "queue", "service_class"),
    compute=longest_waiting(cumulative_seconds),
    pages=(Page.QUEUES,),
    alerts=(
        AlertRule(
            name="GpuCumulativeWaitTooLong",
            summary="{service_class} in queue {queue} of {cluster}: somebody has waited for {value} in all",
            description=(
                "The workload that waits longest has waited for {value} with its earlier waits, which is"
                " past {limit}: either it is thrown out and queued again, or it passed its target long ago."
            ),
            link="queues?cluster={cluster}&queue={queue}&service_class={service_class}",
            limit=Limit(setting="cumulative_wait_factor", gauge="wait_target_seconds", on=("service_class",)),
            identity=("cluster", "queue", "service_class"),
        ),
    ),
    shared_labels=("queue",),
)
