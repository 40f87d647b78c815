"""How often an attempt ends in a preemption."""

from datetime import timedelta

from analytics.rates import ADDS, DONE, per_attempt
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="preemptions_per_attempt_ratio",
    unit=Unit.RATIO,
    title="Preemptions per attempt",
    definition=(
        "Preemptions in the window, of whichever class and mechanism, over the attempts started in it, by"
        " class of the victim. It exceeds 1 where attempts of before are preempted."
    ),
    source="Kueue preempted workloads over admitted workloads",
    sql=DONE,
    labels=("cluster", "service_class"),
    compute=per_attempt("preemptions"),
    windowed=True,
    pages=(Page.QUEUES,),
    alerts=(
        AlertRule(
            name="GpuPreemptionStorm",
            summary="{service_class} work of {cluster} is preempted at {value} of its attempts",
            description=(
                "The attempts of {service_class} that began in the window were preempted at a rate of"
                " {value}; the limit is {limit}."
            ),
            link="policy",
            limit=Limit(times=0.5),
            identity=("cluster", "service_class"),
            hold=timedelta(minutes=15),
            window=timedelta(minutes=5),
            fine_if_undefined=True,
        ),
    ),
    adds=ADDS,
)
