"""GPUs that each entity of a pool holds or asks for."""

from analytics.fairness.shares import DIMENSIONS, LABELS, shares_now
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="demanded_gpus",
    unit=Unit.GPUS,
    title="Demanded GPUs",
    definition=(
        "GPUs held, and GPUs asked by waiting workloads in the flavor assigned to them, else in the first"
        " flavor of their queue that could ever hold them. What its owner holds back, what pauses after a"
        " crash, what fits nowhere and what names no queue asks for nothing. A partly bound gang counts once,"
        " and so does what MultiKueue copied into several clusters."
    ),
    source="definition of this product",
    sql=shares_now("demand"),
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
