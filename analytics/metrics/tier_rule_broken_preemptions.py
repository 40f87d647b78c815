"""Preemptions that took somebody while work of a lower class was there to be taken."""

from analytics.rules_of_preemption import IN_THE_WINDOW, breaches, spares_the_lowest
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="tier_rule_broken_preemptions",
    unit=Unit.PREEMPTIONS,
    title="Preemptions against the tier rule",
    definition=(
        "Preemptions in the window whose victim was not in the lowest preemptible class present, by class"
        " of the victim: work of a lower class ran on the same GPU model of the cluster, or the victim's"
        " class is not preemptible (batch and best-effort are, a setting). Work without a class stands with"
        " batch. Preemptions that only a counter tells of make a lower bound."
    ),
    source="policy of the site; Kueue Preempted condition",
    sql=IN_THE_WINDOW,
    labels=("cluster", "service_class"),
    compute=breaches(spares_the_lowest),
    windowed=True,
    pages=(Page.POLICY,),
    alerts=(
        AlertRule(
            name="GpuTierRuleBroken",
            summary="preemptions of {service_class} in {cluster} while lower work was there to take: {value}",
            description=(
                "Victims that were not in the lowest preemptible class present: {value}; expected {limit}."
            ),
            link="policy",
            limit=Limit(times=0.0),
            identity=("cluster", "service_class"),
        ),
    ),
)
