"""Queue wait: from submission until a workload is first placed, held time left out."""

from datetime import timedelta

from analytics.waits import EXTRA_LABELS, FIRST_WAITS, WAIT, wait_percentiles
from domain.metric import AlertRule, Metric, Page, Unit

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
            name="GpuQueueWaitTooLong",
            summary="p99 queue wait is above the target of its class",
            hold=timedelta(minutes=1),
            severity="warning",
            runbook="GpuQueueWaitTooLong.md",
            match={"quantile": "0.99", "estimator": "censored"},
        ),
        AlertRule(
            name="GpuQueueWaitBroken",
            summary="half of the interactive workloads wait longer than their target: something is broken",
            hold=timedelta(minutes=1),
            severity="critical",
            runbook="GpuQueueWaitBroken.md",
            match={"service_class": "interactive", "quantile": "0.5", "estimator": "censored"},
        ),
    ),
    shared_labels=("queue",),
)
