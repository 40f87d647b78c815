"""Starvation index: the longest current waiting episode."""

from datetime import timedelta

from analytics.waiting import WAITING_NOW, episode_seconds, longest_waiting
from domain.metric import AlertRule, Metric, Page, Unit

METRIC = Metric(
    name="starvation_index_seconds",
    unit=Unit.SECONDS,
    title="Starvation index",
    definition=(
        "The longest current waiting episode: since submission before the first placement, since re-queueing"
        " after it, held and back-off time left out; 0 when nobody waits in a live queue."
    ),
    source="age of the oldest pending job, as in Slurm's and Kueue's pending gauges",
    sql=WAITING_NOW,
    labels=("cluster", "queue", "service_class"),
    compute=longest_waiting(episode_seconds),
    pages=(Page.HOME, Page.QUEUES),
    alerts=(
        AlertRule(
            name="GpuWorkloadStarving",
            summary="a workload waits longer than the target of its class, right now",
            hold=timedelta(minutes=1),
            severity="warning",
            runbook="GpuWorkloadStarving.md",
        ),
    ),
    shared_labels=("queue",),
)
