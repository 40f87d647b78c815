"""Queue wait: from submission until a workload is first placed, held time left out."""

from datetime import timedelta

from analytics.waits import EXTRA_LABELS, FIRST_WAITS, WAIT, wait_percentiles
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_wait_seconds",
    unit=Unit.SECONDS,
    title="Queue wait",
    definition=(
        "Percentiles of the time that workloads wait from submission until their minimum members are first"
        " bound, held time left out. Estimator `censored` counts in those that still wait (Kaplan-Meier with"
        " delayed entry); `started` takes only those first placed in the window."
    ),
    source="Slurm and XDMoD wait time; Kueue admission wait plus placing; Kaplan and Meier 1958",
    sql=FIRST_WAITS,
    labels=("cluster", "queue", "service_class"),
    scraped_where={"estimator": ("censored",), "quantile": ("0.5", "0.99")},
    extra_labels=EXTRA_LABELS,
    compute_frame=wait_percentiles(
        no_wait="no workload waited for its first placement in the window",
        no_end="no workload was first placed in the window",
    ),
    takes=WAIT,
    windowed=True,
    pages=(Page.HOME, Page.QUEUES),
    alerts=(
        AlertRule(
            name="GpuQueueWaitP99TooLong",
            summary="{service_class} in queue {queue} of {cluster}: p99 wait is at least {value}",
            description=(
                "The p99 of the queue wait is at least {value}, the target of {service_class} is {limit}."
            ),
            link="queues?cluster={cluster}&queue={queue}&service_class={service_class}",
            limit=Limit(gauge="wait_target_seconds", on=("service_class",)),
            identity=("cluster", "queue", "service_class"),
            window=timedelta(minutes=5),
            fine_if_undefined=True,
            match={"quantile": "0.99", "estimator": "censored"},
            inhibited_by=("GpuQueueWaitTooLong",),
        ),
    ),
    shared_labels=("queue",),
)
