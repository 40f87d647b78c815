"""Work that could run and does not, because nothing is being scheduled."""

from analytics.fragmentation.pools import INVENTORY, POOL
from analytics.stalled import stalled
from domain.alert import AlertRule, Limit, Severity
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="scheduler_stalled_workloads",
    unit=Unit.WORKLOADS,
    title="Scheduler stalled",
    definition=(
        "Workloads that wait for more than 5 min (a setting) though their pods all fit on free devices and"
        " quota does not keep them back, while no pod with GPUs was bound in the cluster for as long. Quota"
        " keeps nobody back who is admitted, nor who may use a flavor of which the queue's own unused quota"
        " holds all that the queue keeps back for it."
    ),
    source="definition of this product",
    sql=INVENTORY,
    labels=POOL,
    dimensions=POOL,
    compute=stalled,
    pages=(Page.QUEUES,),
    alerts=(
        AlertRule(
            name="GpuSchedulerStalled",
            summary="nothing is bound in {cluster}, though work waits that fits on free {gpu_model}: {value}",
            description=(
                "Workloads that wait for a place that is there, while no pod is bound: {value}; expected"
                " {limit}."
            ),
            link="queues?cluster={cluster}",
            limit=Limit(times=0.0),
            identity=("cluster", "gpu_model"),
            severity=Severity.CRITICAL,
        ),
    ),
)
