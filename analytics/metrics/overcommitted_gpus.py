"""GPUs asked above what is allocatable."""

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
    sql=NODES_NOW
    + """\
select
    cluster,
    gpu_model,
    node,
    case
        when held > allocatable then held - allocatable
        when held <= allocatable then 0
    end as value
from node_now
""",
    labels=LABELS,
    dimensions=DIMENSIONS,
    pages=(Page.CLUSTER, Page.CAPACITY),
    open_labels=("node",),
)
