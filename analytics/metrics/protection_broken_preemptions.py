"""Preemptions of work that had been preempted shortly before."""

from analytics.rules_of_preemption import IN_THE_WINDOW, breaches, comes_too_soon
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="protection_broken_preemptions",
    unit=Unit.PREEMPTIONS,
    title="Preemptions within the protection window",
    definition=(
        "Preemptions in the window of workloads of a protected class (interactive and batch, a setting)"
        " that had been preempted less than 4 h before (a setting). Work without a class stands with batch."
        " Preemptions that only a counter tells of make a lower bound."
    ),
    source="policy of the site; Kueue Preempted condition",
    sql=IN_THE_WINDOW,
    labels=("cluster", "service_class"),
    compute=breaches(comes_too_soon),
    windowed=True,
    pages=(Page.POLICY,),
    alerts=(
        AlertRule(
            name="GpuProtectionBroken",
            summary="preemptions of {service_class} in {cluster} within the protection window: {value}",
            description=(
                "How often a protected workload was preempted again within the protection window: {value};"
                " expected {limit}."
            ),
            link="policy",
            limit=Limit(times=0.0),
            identity=("cluster", "service_class"),
        ),
    ),
)
