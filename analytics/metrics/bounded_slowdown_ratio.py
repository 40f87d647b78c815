"""How much longer workloads took than they ran."""

from analytics.slowdown import COURSE, slowdown_percentiles
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="bounded_slowdown_ratio",
    unit=Unit.RATIO,
    title="Bounded slowdown",
    definition=(
        "Percentiles of wait and run over the run, of workloads that ended in the window and had been placed:"
        " 1 where nobody waited. The wait is all time in waiting states, after evictions too; a run shorter"
        " than `slowdown_shortest_run` of the policy, by default 60 s, counts as one of that length."
    ),
    source="Feitelson and Rudolph, Metrics and Benchmarking for Parallel Job Scheduling, 1998",
    sql="""\
-- One row per workload that ended in [$window_start_ms, $as_of_ms): how long it waited and ran in all.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    user_name,
    gpu_model,
    population,
    waited_ms,
    ran_ms
from ended_work
where ended_ms >= $window_start_ms and ended_ms < $as_of_ms
""",
    labels=("cluster", "service_class"),
    dimensions=(
        *("cluster", "queue", "service_class", "priority_class", "team", "gpu_model"),
        *("user_name", "population"),
    ),
    extra_labels=("quantile",),
    compute_frame=slowdown_percentiles,
    takes=COURSE,
    windowed=True,
    exported=False,
    unless_asked={"population": ("gpu",)},
    pages=(Page.QUEUES,),
)
