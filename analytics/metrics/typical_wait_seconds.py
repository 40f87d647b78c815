"""Typical queue wait: the median, where it rests on enough to say that something is broken."""

from datetime import timedelta

from analytics.waits import FIRST_WAITS, WAIT, typical_wait
from domain.alert import AlertRule, Limit, Severity
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="typical_wait_seconds",
    unit=Unit.SECONDS,
    title="Typical queue wait",
    definition=(
        "The median queue wait, estimator `censored`, where it rests on enough work: undefined where fewer"
        " than five (a setting) were at risk on the way to it."
    ),
    source="definition of this product; Kaplan and Meier 1958",
    sql=FIRST_WAITS,
    labels=("cluster", "service_class"),
    scraped_where={"service_class": ("interactive",)},
    compute_frame=typical_wait,
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    alerts=(
        AlertRule(
            name="GpuQueueWaitBroken",
            summary="half of the {service_class} work of {cluster} waits for {value}",
            description=(
                "The median wait of {service_class} is {value}, its target is {limit}: that is not load,"
                " something is broken."
            ),
            link="queues?cluster={cluster}&service_class={service_class}",
            limit=Limit(gauge="wait_target_seconds", on=("service_class",)),
            identity=("cluster", "service_class"),
            window=timedelta(minutes=5),
            fine_if_undefined=True,
            match={"service_class": "interactive"},
            severity=Severity.CRITICAL,
        ),
    ),
)
