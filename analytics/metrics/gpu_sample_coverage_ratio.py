"""How much of the GPU-time held was seen by GPU metrics."""

from datetime import timedelta

from analytics.activity.ratio import coverage
from domain.alert import AlertRule, Comparison, Limit
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="gpu_sample_coverage_ratio",
    unit=Unit.RATIO,
    title="GPU time seen",
    definition=(
        "Share of the GPU time held by pods in the window for which the GPU's activity was read. A reading"
        " stands until the next one, or for one step where that is more than 1.5 steps away. Pods whose"
        " share of a card cannot be known are left out. Undefined where GPU metrics of the cluster were never"
        " read and are in no setting."
    ),
    source="Samples of dcgm-exporter laid on pods bound to nodes",
    sql="""\
-- One row per pod that held GPUs in the window, with the GPU-time that it held and that was seen.
with seen as (
    select
        cluster,
        pod_uid,
        sum(seen) as seen
    from gpu_seen($window_start_ms, $as_of_ms)
    where pod_uid != ''
    group by cluster, pod_uid
),

held as (
    select
        *,
        (least(coalesce(released_ms, $as_of_ms), $as_of_ms) - greatest(bound_ms, $window_start_ms))
        * micro_gpus as held
    from gpu_holding
    where
        bound_ms < $as_of_ms
        and coalesce(released_ms > $window_start_ms, true)
        and open_until_ms >= $window_start_ms
        and micro_gpus is not null
)

select
    held.cluster,
    held.queue,
    held.service_class,
    held.priority_class,
    held.team,
    held.gpu_model,
    held.gang_size,
    held.node,
    held.held,
    least(coalesce(seen.seen, 0), held.held) as seen,
    held.cluster in (
        select cluster
        from gpu_sample_mark
        -- A source of the settings has a mark before its first sample.
        where coalesce(first_sample_ms < $as_of_ms, true)
    ) as is_read
from held
left join seen
    on held.cluster = seen.cluster and held.pod_uid = seen.pod_uid
""",
    labels=("cluster", "gpu_model", "team"),
    dimensions=(*DIMENSIONS, "node"),
    compute=coverage,
    adds=("held", "seen"),
    apart=("is_read",),
    windowed=True,
    pages=(Page.CLUSTER,),
    alerts=(
        AlertRule(
            name="GpuMetricsMissing",
            summary="only {value} of the GPU-time of some team on {gpu_model} of {cluster} was seen",
            description=(
                "{value} of what the team held was seen, less than the {limit} on which somebody may be"
                " accused: idle time and waste are unknown."
            ),
            link="sources",
            limit=Limit(setting="least_samples"),
            comparison=Comparison.BELOW,
            identity=("cluster", "gpu_model"),
            hold=timedelta(minutes=15),
            window=timedelta(hours=1),
            fine_if_undefined=True,
        ),
    ),
    rests_on_samples=True,
)
