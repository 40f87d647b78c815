"""Slices of MIG cards that are in no instance."""

from analytics.evaluate import gpus_of
from analytics.fragmentation.nodes import DIMENSIONS, LABELS, NODES_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="unpartitioned_gpus",
    unit=Unit.GPUS,
    title="GPUs unpartitioned",
    definition=(
        "Compute slices of MIG cards that no created instance covers, as parts of a card: twice three"
        " sevenths leave one. The cards are those that the node's label or its device slices count, else as"
        " few as can hold the instances. Nobody can be given them before the cards are cut anew."
    ),
    source="Kubernetes node capacity by MIG profile; node label nvidia.com/gpu.count",
    sql=NODES_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("unpartitioned"),
    pages=(Page.CLUSTER, Page.CAPACITY),
    open_labels=("node",),
)
