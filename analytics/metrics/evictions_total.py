"""Evictions that are not preemptions."""

from domain.metric import DIMENSIONS, Metric, MetricKind, Page, Unit

METRIC = Metric(
    name="evictions_total",
    unit=Unit.TOTAL,
    title="Evictions",
    definition=(
        "Workloads thrown out for a reason other than preemption: pods-ready timeout, node failure, taint,"
        " admission check, queue stopped and the like; those that only a counter tells of are included."
    ),
    source="Kueue Evicted condition, Kubernetes DisruptionTarget; schedulingStats",
    sql="""\
-- One row per eviction in [$since_ms, $as_of_ms), and a row of zero per combination of dimensions seen.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    reason,
    1 + missed as value
from gpu_eviction
where not preempted and at_ms >= $since_ms and at_ms < $as_of_ms and open_until_ms >= $since_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    null as reason,
    0 as value
from seen_before($as_of_ms)
""",
    labels=("cluster", "service_class", "reason"),
    dimensions=(*DIMENSIONS, "reason"),
    adds=("value",),
    kind=MetricKind.COUNTER,
    pages=(Page.QUEUES,),
)
