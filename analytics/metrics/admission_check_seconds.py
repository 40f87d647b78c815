"""How long workloads stand between their quota and their admission."""

from analytics.waits import EXTRA_LABELS, WAIT, wait_percentiles
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="admission_check_seconds",
    unit=Unit.SECONDS,
    title="Time in admission checks",
    definition=(
        "Percentiles of the stays in `checking`: quota is reserved and admission checks are pending, so"
        " that the quota is used by nobody. Each stay counts by itself, also after an eviction; estimators"
        " as for the queue wait."
    ),
    source="Kueue admission checks wait time",
    sql="""\
-- One row per stay in checking that lay in [$window_start_ms, $as_of_ms): its length at either end of the
-- window, and whether it was over inside.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    greatest($window_start_ms - start_ms, 0) as entry_ms,
    least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms as exit_ms,
    coalesce(end_ms < $as_of_ms, false) as placed
from workload_span
where
    state = 'checking'
    and start_ms < $as_of_ms
    and coalesce(end_ms > $window_start_ms, true)
    and open_until_ms >= $window_start_ms
""",
    labels=("cluster", "queue"),
    scraped_where={"estimator": ("censored",), "quantile": ("0.5", "0.99")},
    extra_labels=EXTRA_LABELS,
    compute_frame=wait_percentiles(
        no_wait="no workload waited for admission checks in the window",
        no_end="no admission check was over in the window",
    ),
    takes=WAIT,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
