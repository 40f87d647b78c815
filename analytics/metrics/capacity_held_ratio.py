"""The part of the capacity that was held."""

from analytics.capacity.ratios import held, part_of_capacity
from analytics.wastage.goodput import USE_AND_CAPACITY
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
    sql=USE_AND_CAPACITY,
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model"),
    compute=part_of_capacity(held),
    windowed=True,
    pages=(Page.CAPACITY,),
)
