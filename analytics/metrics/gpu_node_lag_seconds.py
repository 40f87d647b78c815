"""How far GPU metrics lag behind."""

from analytics.activity.lag import DIMENSIONS, NODE_LAGS, worst_lag
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="gpu_node_lag_seconds",
    unit=Unit.SECONDS,
    title="Lag of GPU metrics",
    definition=(
        "For how long nothing is known of what a node's GPUs did: since its last reading no longer stands"
        " or, where nobody told of it, since it came. Without the node that of the worst one."
    ),
    source="Samples of dcgm-exporter by node",
    sql=NODE_LAGS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=worst_lag,
    pages=(Page.SOURCES,),
    open_labels=("node",),
)
