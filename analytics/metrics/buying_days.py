"""On how many of the last days a pool was full, productive and waited for."""

from datetime import timedelta

from analytics.capacity.days import DAYS, speaking_for_buying
from domain.alert import AlertRule, Comparison, Limit, Severity
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="buying_days",
    unit=Unit.DAYS,
    title="Days that speak for buying",
    definition=(
        "Of the last seven days (a setting), 24 hours each, those on which all three conditions of buying"
        " held: 95 % of the capacity held, 85 % productive, and a median wait of batch above 3 h (settings)."
        " At least so many where a condition is not known."
    ),
    source="definition of this product",
    sql=DAYS,
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model"),
    compute=speaking_for_buying,
    every=timedelta(hours=1),
    pages=(Page.CAPACITY,),
    rests_on_samples=True,
    alerts=(
        AlertRule(
            name="GpuBuyOrTune",
            summary=(
                "{gpu_model} of {cluster} were full, productive and waited for on {value} of the last days"
            ),
            description=(
                "On {value} days all three conditions of buying held, and {limit} are enough: more GPUs would"
                " be used. Where one of them fails, the page Capacity says which, and what to tune first."
            ),
            link="capacity?cluster={cluster}&gpu_model={gpu_model}",
            limit=Limit(setting="buy_days"),
            comparison=Comparison.AT_LEAST,
            identity=("cluster", "gpu_model"),
            # It is measured once an hour, and windows slide: a day that is on the edge is no news.
            hold=timedelta(hours=1),
            window=timedelta(hours=3),
            keep=timedelta(hours=6),
            severity=Severity.INFO,
        ),
    ),
)
