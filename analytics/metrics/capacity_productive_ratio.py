"""The part of the capacity that was held and productive."""

from analytics.capacity.ratios import part_of_capacity, productive
from analytics.wastage.goodput import USE_AND_CAPACITY
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="capacity_productive_ratio",
    unit=Unit.RATIO,
    title="Capacity productive",
    definition=(
        "GPU-hours held in the window less idle, resident idle, gang-hold and lost ones, over the GPU-hours"
        " that the nodes had. The second condition of buying is 85 % (a setting). Time of which the activity"
        " is unknown is left out, which makes a lower bound."
    ),
    source="definition of this product",
    sql=USE_AND_CAPACITY,
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model"),
    compute=part_of_capacity(productive),
    windowed=True,
    pages=(Page.CAPACITY,),
    low_is_bad=True,
    rests_on_samples=True,
)
