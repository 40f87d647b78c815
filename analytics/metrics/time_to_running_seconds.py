"""Time to running: queue wait and start-up together."""

from analytics.waits import EXTRA_LABELS, WAIT, wait_percentiles
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="time_to_running_seconds",
    unit=Unit.SECONDS,
    title="Time to running",
    definition=(
        "Percentiles of queue wait plus start-up (image pull, init) until the minimum members first run;"
        " estimators as for the queue wait."
    ),
    source="Kubernetes pod start-up; Kueue ready wait time",
    sql="""\
-- One row per workload that waited or started up for its first run in [$window_start_ms, $as_of_ms):
-- that clock at either end of the window, and whether it first ran inside.
with clock as (
    select
        cluster,
        workload_uid,
        sum(greatest(least(coalesce(end_ms, $as_of_ms), $window_start_ms) - start_ms, 0))::bigint as entry_ms,
        sum(least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms)::bigint as exit_ms
    from workload_span
    where
        start_ms < $as_of_ms
        and open_until_ms >= $window_start_ms
        and (
            (first_wait and waits)
            or (state = 'starting' and coalesce(start_ms < first_running_ms, true))
        )
    group by cluster, workload_uid
)

select
    gpu_workload.cluster,
    gpu_workload.queue,
    gpu_workload.service_class,
    gpu_workload.priority_class,
    gpu_workload.team,
    case when gpu_workload.first_placed_ms < $as_of_ms then gpu_workload.gpu_model else '' end as gpu_model,
    gpu_workload.gang_size,
    coalesce(clock.entry_ms, 0) as entry_ms,
    coalesce(clock.exit_ms, 0) as exit_ms,
    coalesce(gpu_workload.first_running_ms < $as_of_ms, false) as placed
from gpu_workload
left join clock
    on gpu_workload.cluster = clock.cluster and gpu_workload.workload_uid = clock.workload_uid
where
    gpu_workload.submitted_ms < $as_of_ms
    and gpu_workload.open_until_ms >= $window_start_ms
    and coalesce(gpu_workload.first_running_ms >= $window_start_ms, true)
    and (
        coalesce(gpu_workload.first_running_ms < $as_of_ms, false)
        or coalesce(clock.exit_ms > clock.entry_ms, false)
    )
""",
    labels=("cluster", "queue", "service_class"),
    scraped_where={"estimator": ("censored",), "quantile": ("0.99",)},
    extra_labels=EXTRA_LABELS,
    compute_frame=wait_percentiles(
        no_wait="no workload waited or started up in the window",
        no_end="no workload first ran in the window",
    ),
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
