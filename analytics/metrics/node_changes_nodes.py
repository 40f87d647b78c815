"""How many nodes come and go in a day."""

from analytics.node_changes import COME_AND_GONE, DIMENSIONS, per_day
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="node_changes_nodes",
    unit=Unit.NODES,
    title="Node velocity",
    definition=(
        "Nodes with GPUs per day, over the window: joined, left, or lost, which is gone while pods still"
        " held GPUs of it. capacity_type is spot where a label of Karpenter, EKS, GKE or AKS says so, else"
        " regular: spot nodes that are lost are spot evictions."
    ),
    source="Kubernetes nodes; labels of capacity types",
    sql=COME_AND_GONE,
    labels=("cluster", "gpu_model", "capacity_type"),
    dimensions=DIMENSIONS,
    extra_labels=("change",),
    compute=per_day,
    windowed=True,
    pages=(Page.CLUSTER,),
    open_labels=("node",),
)
