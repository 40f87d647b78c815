"""What work went with nodes."""

from analytics.node_changes import DIMENSIONS, LOST_WITH_NODES, lost_hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="node_loss_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Work lost to nodes",
    definition=(
        "Running GPU-hours in the window that were surely lost to nodes, GPUs or the network, since the"
        " last known checkpoint, by node and by its kind of capacity: what spot evictions and sick nodes"
        " cost."
    ),
    source="definition of this product; labels of capacity types",
    sql=LOST_WITH_NODES,
    labels=("cluster", "gpu_model", "capacity_type"),
    dimensions=DIMENSIONS,
    compute=lost_hours,
    windowed=True,
    pages=(Page.CLUSTER,),
    open_labels=("node",),
)
