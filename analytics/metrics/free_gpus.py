"""GPUs that could be given out now."""

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
    sql=NODES_NOW
    + """\
select
    cluster,
    gpu_model,
    node,
    case when schedulable then spare else 0 end as value
from node_now
""",
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model", "node"),
    pages=(Page.HOME, Page.CLUSTER),
    open_labels=("node",),
)
