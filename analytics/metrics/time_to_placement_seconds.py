"""Time to placement: the clock of the wall from submission to the first placement."""

from analytics.waits import EXTRA_LABELS, WAIT, wait_percentiles
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="time_to_placement_seconds",
    unit=Unit.SECONDS,
    title="Time to placement",
    definition=(
        "Percentiles of the time by the clock on the wall from submission until the minimum members are first"
        " bound: the queue wait, and also the time in which the owner held the workload back or it drained"
        " after an eviction; estimators as for the queue wait."
    ),
    source="Kubernetes pod_scheduling_sli_duration_seconds counts without gates; this one with them",
    sql="""\
-- One row per workload that was not yet placed in some part of [$window_start_ms, $as_of_ms): its age
-- at either end of the window, and whether it was placed inside.
select
    cluster,
    workload_uid,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    greatest($window_start_ms - submitted_ms, 0) as entry_ms,
    least(coalesce(first_placed_ms, ended_ms, $as_of_ms), $as_of_ms) - submitted_ms as exit_ms,
    coalesce(first_placed_ms < $as_of_ms, false) as placed
from gpu_workload
where
    submitted_ms < $as_of_ms
    and coalesce(first_placed_ms, ended_ms, $as_of_ms) >= $window_start_ms
    and open_until_ms >= $window_start_ms
""",
    labels=("cluster", "queue", "service_class"),
    scraped=False,
    extra_labels=EXTRA_LABELS,
    compute_frame=wait_percentiles(
        no_wait="no workload was without a placement in the window",
        no_end="no workload was first placed in the window",
    ),
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
