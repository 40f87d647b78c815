"""Free GPUs that no pod may take."""

from analytics.evaluate import gpus_of
from analytics.fragmentation.nodes import DIMENSIONS, LABELS, NODES_NOW
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="cordoned_gpus",
    unit=Unit.GPUS,
    title="GPUs cordoned",
    definition=(
        "Allocatable GPUs that no pod holds, on nodes that are cordoned or not ready. With held, free,"
        " unhealthy and unpartitioned GPUs they make up the capacity, less what is overcommitted."
    ),
    source="Kubernetes node unschedulable and Ready",
    sql=NODES_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=gpus_of("cordoned"),
    pages=(Page.CLUSTER, Page.CAPACITY),
    open_labels=("node",),
)
