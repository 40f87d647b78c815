"""GPUs asked above what is allocatable."""

from analytics.evaluate import gpus_of
from analytics.fragmentation.nodes import DIMENSIONS, LABELS, NODES_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="overcommitted_gpus",
    unit=Unit.GPUS,
    title="GPUs overcommitted",
    definition=(
        "GPUs that pods on a node hold above what it can give out: a pod stays when its device turns sick."
        " They hide no free GPU elsewhere."
    ),
    source="Kubernetes requests of bound, non-terminal pods less node allocatable",
    sql=NODES_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("overcommitted"),
    pages=(Page.CLUSTER, Page.CAPACITY),
    open_labels=("node",),
)
