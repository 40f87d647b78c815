"""Re-queue wait: waiting of workloads that were placed before and lost their place."""

from analytics.waits import EXTRA_LABELS, WAIT, wait_percentiles
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="requeue_wait_seconds",
    unit=Unit.SECONDS,
    title="Re-queue wait",
    definition=(
        "Percentiles of the waiting episodes after a workload's first placement, each from its re-queueing"
        " until it is placed again, held and back-off time left out; kept apart from the queue wait."
    ),
    source="Kueue eviction and re-queueing; Slurm requeue",
    sql="""\
-- One row per waiting episode after the first placement that waited in [$window_start_ms, $as_of_ms):
-- its clock at either end of the window, and whether it ended inside in a placement. Of those that queued
-- again, few of all, all spans are read to number their episodes.
with queued_again as (
    select distinct cluster, workload_uid, open_until_ms
    from span
    where
        not first_wait
        and state in ('queued', 'checking', 'placing')
        and start_ms < $as_of_ms
        and open_until_ms >= $window_start_ms
),

waits_again as materialized (
    select gpu_workload.*
    from queued_again
    inner join gpu_workload
        on queued_again.cluster = gpu_workload.cluster
        and queued_again.workload_uid = gpu_workload.workload_uid
        and queued_again.open_until_ms = gpu_workload.open_until_ms
    where gpu_workload.open_until_ms >= $window_start_ms
),

of_waiter as (
    select * from spans_of('waits_again')
    where open_until_ms >= $window_start_ms
),

episode as (
    select
        cluster,
        queue,
        service_class,
        priority_class,
        team,
        gpu_model,
        gang_size,
        sum(greatest(least(coalesce(end_ms, $as_of_ms), $window_start_ms) - start_ms, 0))::bigint as entry_ms,
        sum(least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms)::bigint as exit_ms,
        min(placed_ms) as placed_ms
    from numbered_waits('of_waiter')
    where episode > 0 and start_ms < $as_of_ms
    group by
        cluster, workload_uid, episode, queue, service_class, priority_class, team, gpu_model, gang_size
)

select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    entry_ms,
    exit_ms,
    coalesce(placed_ms < $as_of_ms, false) as placed
from episode
where
    coalesce(placed_ms >= $window_start_ms, true)
    and (coalesce(placed_ms < $as_of_ms, false) or exit_ms > entry_ms)
""",
    labels=("cluster", "queue", "service_class"),
    scraped_where={"estimator": ("censored",), "quantile": ("0.99",)},
    extra_labels=EXTRA_LABELS,
    compute_frame=wait_percentiles(
        no_wait="no workload waited again in the window",
        no_end="no workload was placed again in the window",
    ),
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
