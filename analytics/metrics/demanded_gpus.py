"""GPUs that each entity of a pool holds or asks for."""

from analytics.evaluate import gpus_of
from analytics.fairness.shares import DIMENSIONS, LABELS, SHARES_NOW
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
    sql=SHARES_NOW,
    labels=LABELS,
    scraped=False,
    dimensions=DIMENSIONS,
    compute=gpus_of("demand"),
    pages=(Page.FAIRNESS,),
    shared_labels=("queue", "pool"),
)
