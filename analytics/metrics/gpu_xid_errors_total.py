"""XIDs: errors of GPUs, as their driver numbers them."""

from domain.metric import Metric, MetricKind, Page, Unit

METRIC = Metric(
    name="gpu_xid_errors_total",
    unit=Unit.TOTAL,
    title="XID errors",
    definition=(
        "How often the last XID of a GPU became another one, by its number. Exporters show the last XID for"
        " ever, so the same one twice in a row is counted once, and one that was there before anybody looked"
        " is not counted: at least so many."
    ),
    source="DCGM_FI_DEV_XID_ERRORS of dcgm-exporter; NVIDIA XID catalog",
    sql="""\
-- One row per XID that was seen to come before $as_of_ms.
select distinct
    cluster,
    gpu_model,
    node,
    device,
    at_ms,
    cast(xid as varchar) as xid,
    1 as value
from gpu_fault
where kind = 'xid' and earliest_ms > 0 and at_ms < $as_of_ms
""",
    labels=("cluster", "xid"),
    dimensions=("cluster", "gpu_model", "node", "xid"),
    kind=MetricKind.COUNTER,
    # Whoever runs there may be hit next.
    open_labels=("node",),
    pages=(Page.CLUSTER,),
)
