"""GPUs that the device plugin reports as sick."""

from analytics.evaluate import gpus_of
from analytics.fragmentation.nodes import DIMENSIONS, LABELS, NODES_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="unhealthy_gpus",
    unit=Unit.GPUS,
    title="GPUs unhealthy",
    definition=(
        "GPUs of nodes that cannot be given out for their own sake: capacity less allocatable, less what no"
        " MIG instance covers."
    ),
    source="Kubernetes node capacity less allocatable; NVIDIA device plugin's health",
    sql=NODES_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("unhealthy"),
    pages=(Page.CLUSTER, Page.CAPACITY),
    open_labels=("node",),
)
