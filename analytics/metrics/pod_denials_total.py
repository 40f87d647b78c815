"""Pods that were refused when their controller tried to make them."""

from domain.metric import Metric, MetricKind, Page, Unit

METRIC = Metric(
    name="pod_denials_total",
    unit=Unit.TOTAL,
    title="Pods refused",
    definition=(
        "How often a controller tried to make a pod and was refused, by who refused: a ResourceQuota, a"
        " LimitRange, Gatekeeper, a policy or another webhook. Its workload waits without a pod. Workloads"
        " that ask no GPU are left out; an owner of which nothing else is known counts for the team of its"
        " namespace. Events may be lost: at least so many."
    ),
    source="Kubernetes Events with the reason FailedCreate",
    sql="""\
-- One row per sighting before $as_of_ms of an Event that tells of refused pods.
select
    cluster,
    team,
    denied_by as cause,
    count as value
from pod_denial
where at_ms < $as_of_ms
""",
    labels=("cluster", "team", "cause"),
    dimensions=("cluster", "team", "cause"),
    kind=MetricKind.COUNTER,
    pages=(Page.POLICY,),
)
