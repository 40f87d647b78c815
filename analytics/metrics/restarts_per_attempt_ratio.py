"""How often work begins anew, for the attempts that it makes."""

from datetime import timedelta

from analytics.rates import ADDS, DONE, per_attempt
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="restarts_per_attempt_ratio",
    unit=Unit.RATIO,
    title="Restarts per attempt",
    definition=(
        "Attempts in the window that are not their workload's first, and further runs of a pod within its"
        " attempt, as after a crash, over the attempts started in the window. It exceeds 1 where pods crash"
        " in a loop."
    ),
    source="container restarts and requeues of Kubernetes and Kueue",
    sql=DONE,
    labels=("cluster", "service_class"),
    compute=per_attempt("restarts"),
    windowed=True,
    pages=(Page.QUEUES,),
    alerts=(
        AlertRule(
            name="GpuRestartStorm",
            summary="{service_class} work of {cluster} restarts at {value} of its attempts",
            description=(
                "Of the attempts of {service_class} that began in the window, {value} were starts after a"
                " failure or an eviction; the limit is {limit}."
            ),
            link="waste?cluster={cluster}&service_class={service_class}",
            limit=Limit(times=0.5),
            identity=("cluster", "service_class"),
            hold=timedelta(minutes=15),
            window=timedelta(minutes=5),
            fine_if_undefined=True,
        ),
    ),
    adds=ADDS,
)
