"""How many of the intervals that were told of a start held it."""

from analytics.evaluate import share
from domain.metric import Metric, Page, Unit

OUTCOMES = """\
-- One row per interval that was told of the start of waiting work, and whose outcome became known in
-- [$window_start_ms, $as_of_ms); value is 1 where the start lay inside.
select
    cluster,
    queue,
    service_class,
    case when side = 0 then 1 else 0 end as value
from eta_outcomes($as_of_ms)
where known_ms >= $window_start_ms and known_ms < $as_of_ms
order by cluster, known_ms, workload_uid, mark, at_ms
"""
NONE = "no interval that was told of a start had its outcome in the window"


METRIC = Metric(
    name="eta_coverage_ratio",
    unit=Unit.RATIO,
    title="Starts inside their 80 % interval",
    definition=(
        "Of the 80 % intervals that were told of the start of waiting workloads, and whose outcome became"
        " known in the window, the share in which the workload started inside. One is told of each workload"
        " when it begins to wait, at first or after it lost its place, and as it comes to 10 min, 1 h, 6 h,"
        " 1 d and 3 d. That a start is late is"
        " known as soon as the interval is over. Who gave up inside an interval is left out. 0.8 is meant."
    ),
    source="definitions, section 3; docs/adr/0036 and 0058",
    sql=OUTCOMES,
    labels=("cluster", "service_class"),
    dimensions=("cluster", "queue", "service_class"),
    compute=share(NONE),
    windowed=True,
    pages=(Page.QUEUES,),
    low_is_bad=True,
)
