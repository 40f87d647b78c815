"""The part of the capacity that was held."""

from datetime import timedelta

from analytics.capacity.ratios import HELD_AND_CAPACITY, held, part_of_capacity
from domain.alert import AlertRule, Comparison, Limit, Severity
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="capacity_held_ratio",
    unit=Unit.RATIO,
    title="Capacity held",
    definition=(
        "GPU-hours that pods held in the window, over the GPU-hours that the nodes had. The first condition"
        " of buying is 95 % (a setting)."
    ),
    source="definition of this product",
    sql=HELD_AND_CAPACITY,
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model"),
    compute=part_of_capacity(held),
    windowed=True,
    pages=(Page.CAPACITY,),
    alerts=(
        AlertRule(
            name="GpuBuyOrTune",
            summary="buy or tune: {value} of the {gpu_model} of {cluster} were held, for a day on end",
            description=(
                "{value} of the capacity was held over the last 24 hours, and {limit} or more for a day"
                " before. Whether to buy or what to tune first, the page Capacity says from several days:"
                " they must also be productive, and waited for."
            ),
            link="capacity?cluster={cluster}&gpu_model={gpu_model}",
            limit=Limit(setting="buy_held_ratio"),
            comparison=Comparison.AT_LEAST,
            identity=("cluster", "gpu_model"),
            hold=timedelta(days=1),
            window=timedelta(hours=1),
            severity=Severity.INFO,
        ),
    ),
)
