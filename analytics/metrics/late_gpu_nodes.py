"""Nodes whose GPUs nobody tells of."""

from datetime import timedelta

from analytics.activity.lag import DIMENSIONS, NODE_LAGS, late_nodes
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="late_gpu_nodes",
    unit=Unit.NODES,
    title="Nodes late with GPU metrics",
    definition=(
        "Nodes with GPUs of which nothing is known for longer than `policy.gpu_source_stale_after`, in"
        " clusters whose GPU metrics are read."
    ),
    source="Samples of dcgm-exporter by node",
    sql=NODE_LAGS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=late_nodes,
    pages=(Page.SOURCES,),
    open_labels=("node",),
    alerts=(
        AlertRule(
            name="GpuMetricsLate",
            summary="nodes of {cluster} whose GPU metrics do not come any more: {value}",
            description=(
                "Nodes of which no GPU metrics came for longer than is tolerated: {value}; expected {limit}."
                " What their GPUs do since then is unknown: neither idle nor useful."
            ),
            link="sources",
            limit=Limit(times=0.0),
            identity=("cluster",),
            hold=timedelta(minutes=5),
        ),
    ),
)
