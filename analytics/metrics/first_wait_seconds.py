"""First waits as a classic histogram, for ranges that Prometheus keeps longer than we do."""

from analytics.histogram import histogram
from domain.metric import Metric, MetricKind, Unit

# The targets of the service classes, 300, 3600 and 86400 s, are among the edges.
EDGES_SECONDS = (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800)

METRIC = Metric(
    name="first_wait_seconds",
    unit=Unit.SECONDS,
    title="First waits, all time",
    definition=(
        "Histogram of the queue waits of all workloads placed so far. It misses those that still wait: alert"
        " on the percentiles and the starvation index, not on this."
    ),
    source="Prometheus classic histogram; Kueue admission wait time",
    sql="""\
-- One row per combination of dimensions and bucket: first waits that ended in [$since_ms, $as_of_ms).
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    case
        when first_wait_ms <= 10000 then 10000
        when first_wait_ms <= 30000 then 30000
        when first_wait_ms <= 60000 then 60000
        when first_wait_ms <= 120000 then 120000
        when first_wait_ms <= 300000 then 300000
        when first_wait_ms <= 600000 then 600000
        when first_wait_ms <= 1800000 then 1800000
        when first_wait_ms <= 3600000 then 3600000
        when first_wait_ms <= 7200000 then 7200000
        when first_wait_ms <= 14400000 then 14400000
        when first_wait_ms <= 43200000 then 43200000
        when first_wait_ms <= 86400000 then 86400000
        when first_wait_ms <= 172800000 then 172800000
    end as edge_ms,
    count(*) as waits,
    sum(first_wait_ms) as sum_ms
from gpu_workload
where first_placed_ms >= $since_ms and first_placed_ms < $as_of_ms and open_until_ms >= $since_ms
group by cluster, queue, service_class, priority_class, team, gpu_model, gang_size, edge_ms
""",
    labels=("cluster", "service_class"),
    extra_labels=("le",),
    adds=("waits", "sum_ms"),
    apart=("edge_ms",),
    kind=MetricKind.HISTOGRAM,
    compute=histogram(EDGES_SECONDS),
    shared_labels=("queue",),
)
