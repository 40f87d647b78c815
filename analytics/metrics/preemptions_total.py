"""Preemptions: workloads thrown out for another one."""

from domain.metric import DIMENSIONS, Metric, MetricKind, Page, Unit

METRIC = Metric(
    name="preemptions_total",
    unit=Unit.TOTAL,
    title="Preemptions",
    definition=(
        "Workloads thrown out to make room for another, by class of the victim, class of the preemptor and"
        " mechanism; one preemption is counted once however many traces it leaves, and those that only a"
        " scheduler's counter tells of are included."
    ),
    source="Kueue Preempted condition, kube-scheduler and Volcano preemption; schedulingStats",
    sql="""\
-- One row per preemption in [$since_ms, $as_of_ms), and a row of zero per combination of dimensions seen.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    victim_class,
    case when preemptor_class = '' then 'unknown' else preemptor_class end as preemptor_class,
    mechanism,
    1 + missed as value
from workload_eviction
where preempted and at_ms >= $since_ms and at_ms < $as_of_ms and open_until_ms >= $since_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    service_class as victim_class,
    null as preemptor_class,
    null as mechanism,
    0 as value
from seen_before($as_of_ms)
""",
    labels=("cluster", "victim_class", "preemptor_class", "mechanism"),
    dimensions=(*DIMENSIONS, "victim_class", "preemptor_class", "mechanism"),
    adds=("value",),
    kind=MetricKind.COUNTER,
    pages=(Page.HOME, Page.QUEUES),
)
