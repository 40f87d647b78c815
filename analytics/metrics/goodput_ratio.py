"""Useful GPU-hours per GPU-hour of capacity."""

from analytics.wastage.goodput import USE_AND_CAPACITY, goodput_ratio
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="goodput_ratio",
    unit=Unit.RATIO,
    title="Goodput",
    definition=(
        "Useful GPU-hours over the GPU-hours that the nodes had in the window, whoever held them: the"
        " throughput of the cluster, to be read beside its fairness. A lower bound where activity is partly"
        " unknown."
    ),
    source="definitions of this product",
    sql=USE_AND_CAPACITY,
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model", "node"),
    compute=goodput_ratio,
    windowed=True,
    pages=(Page.WASTE, Page.CLUSTER, Page.FAIRNESS),
    low_is_bad=True,
    rests_on_samples=True,
)
