"""Starvation index: the longest current waiting episode."""

from analytics.waiting import WAITING_NOW, episode_seconds, longest_waiting
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

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
            name="GpuQueueWaitTooLong",
            summary="{service_class} in queue {queue} of {cluster}: somebody waits for {value}",
            description=(
                "The longest wait at this moment is {value}, the target of {service_class} is {limit}; past"
                " it wait: {count}."
            ),
            link="queues?cluster={cluster}&queue={queue}&service_class={service_class}",
            limit=Limit(gauge="wait_target_seconds", on=("service_class",)),
            identity=("cluster", "queue", "service_class"),
            counted="past_target_workloads",
            facts={"breached_jobs": "{count}", "oldest_wait_s": "{number}"},
            example="example_job",
        ),
    ),
    shared_labels=("queue",),
)
