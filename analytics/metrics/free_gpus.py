"""GPUs that could be given out now."""

from analytics.evaluate import gpus_of
from analytics.fragmentation.nodes import NODES_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="free_gpus",
    unit=Unit.GPUS,
    title="GPUs free",
    definition=(
        "Allocatable GPUs that no pod holds, summed over nodes; never negative, and 0 on a node that is"
        " cordoned or not ready. A node on which a share cannot be known adds 0 and makes a lower bound."
    ),
    source="Kubernetes node allocatable less requests of bound, non-terminal pods",
    sql=NODES_NOW,
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model", "node"),
    compute=gpus_of("free"),
    pages=(Page.HOME, Page.CLUSTER),
    open_labels=("node",),
)
