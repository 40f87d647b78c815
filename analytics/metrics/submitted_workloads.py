"""Workloads submitted in a window: who fills the queue."""

from datetime import timedelta

from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="submitted_workloads",
    unit=Unit.WORKLOADS,
    title="Workloads submitted",
    definition=(
        "Workloads submitted in the window, by default the last hour: whose submissions stand behind a flood."
    ),
    source="creationTimestamp of the workload or its job",
    sql="""\
-- One row per workload submitted in [$window_start_ms, $as_of_ms), and a row of zero per combination of
-- dimensions seen.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    1 as value
from gpu_workload
where
    submitted_ms >= $window_start_ms and submitted_ms < $as_of_ms and open_until_ms >= $window_start_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    0 as value
from seen_before($as_of_ms)
""",
    labels=("cluster", "team"),
    dimensions=DIMENSIONS,
    adds=("value",),
    windowed=True,
    window=timedelta(hours=1),
    pages=(Page.POLICY,),
    shared_labels=("queue",),
)
