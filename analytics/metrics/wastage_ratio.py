"""Wastage ratio."""

from datetime import timedelta

from analytics.wastage.asked import GPU_TIME, TIME_ADDS, TIME_APART, WASTE_DIMENSIONS, ratios
from analytics.wastage.ratios import wastage_ratio
from domain.alert import AlertRule, Limit, Severity
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="wastage_ratio",
    unit=Unit.RATIO,
    title="Wastage ratio",
    definition=(
        "Self-inflicted waste over GPU-time held in the window: crash_lost at its low end, backoff, "
        "start-up past its limit, idle and charged resident_idle. A lower bound where activity is partly "
        "unknown."
    ),
    source="definitions of this product",
    sql=GPU_TIME,
    labels=("cluster", "team"),
    dimensions=WASTE_DIMENSIONS,
    compute=ratios(lambda bill, _: wastage_ratio(bill)),
    windowed=True,
    adds=TIME_ADDS,
    apart=TIME_APART,
    pages=(Page.WASTE,),
    alerts=(
        AlertRule(
            name="GpuWastageTooHigh",
            summary="team {team} of {cluster} wasted at least {value} of what it held",
            description=(
                "Own failures, idle GPUs and slow starts took at least {value} of the GPU-time held; {limit}"
                " is tolerated."
            ),
            link="waste?cluster={cluster}&team={team}",
            limit=Limit(setting="quota_tolerated_ratio"),
            identity=("cluster", "team"),
            hold=timedelta(minutes=15),
            window=timedelta(hours=1),
            severity=Severity.INFO,
        ),
    ),
    rests_on_samples=True,
)
