"""Running time with known activity."""

from analytics.wastage.asked import GPU_TIME, TIME_ADDS, TIME_APART, WASTE_DIMENSIONS, ratios
from analytics.wastage.ratios import activity_coverage
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="activity_known_ratio",
    unit=Unit.RATIO,
    title="Running time with known activity",
    definition=(
        "The share of the running GPU-time in the window of which it is known whether the GPU worked. The "
        "rest is unknown, never useful and never idle."
    ),
    source="DCGM exporters, directly or through Prometheus",
    sql=GPU_TIME,
    labels=("cluster", "team"),
    dimensions=WASTE_DIMENSIONS,
    compute=ratios(lambda bill, _: activity_coverage(bill)),
    windowed=True,
    adds=TIME_ADDS,
    apart=TIME_APART,
    pages=(Page.WASTE, Page.SOURCES),
    low_is_bad=True,
    rests_on_samples=True,
)
