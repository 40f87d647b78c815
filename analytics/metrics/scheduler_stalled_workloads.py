"""Work that could run and does not, because nothing is being scheduled."""

from analytics.fragmentation.pools import INVENTORY, POOL
from analytics.stalled import stalled
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="scheduler_stalled_workloads",
    unit=Unit.WORKLOADS,
    title="Scheduler stalled",
    definition=(
        "Workloads that wait for more than 5 min (a setting) though their pods all fit on free devices and"
        " quota does not keep them back, while no pod with GPUs was bound in the cluster for as long. Quota"
        " keeps nobody back who is admitted, nor a queue of which all that waits fits into its own unused"
        " quota."
    ),
    source="definition of this product",
    sql=INVENTORY,
    labels=POOL,
    dimensions=POOL,
    compute=stalled,
    pages=(Page.QUEUES,),
)
