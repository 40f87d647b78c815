"""GPUs that there are."""

from analytics.evaluate import gpus_of
from analytics.fragmentation.nodes import DIMENSIONS, LABELS, NODES_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="capacity_gpus",
    unit=Unit.GPUS,
    title="GPUs, capacity",
    definition=(
        "Whole GPUs of the nodes that there are now: sick ones, those on cordoned nodes, and slices of MIG"
        " cards that no instance covers included."
    ),
    source="Kubernetes node capacity",
    sql=NODES_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("capacity"),
    pages=(Page.CLUSTER, Page.CAPACITY),
    open_labels=("node",),
)
