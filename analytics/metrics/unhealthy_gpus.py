"""GPUs that the device plugin reports as sick."""

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
    sql=NODES_NOW
    + """\
select
    cluster,
    gpu_model,
    node,
    case
        when capacity - unpartitioned > allocatable then capacity - unpartitioned - allocatable
        when capacity - unpartitioned <= allocatable then 0
    end as value
from node_now
""",
    labels=LABELS,
    dimensions=DIMENSIONS,
    pages=(Page.CLUSTER, Page.CAPACITY),
    open_labels=("node",),
)
