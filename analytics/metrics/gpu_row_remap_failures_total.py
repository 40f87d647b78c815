"""Rows of GPU memory that could not be remapped."""

from domain.metric import Metric, MetricKind, Page, Unit

METRIC = Metric(
    name="gpu_row_remap_failures_total",
    unit=Unit.TOTAL,
    title="Row remap failures",
    definition=(
        "GPUs that were seen to run out of rows to remap broken memory to: such a card has to be replaced."
        " One that was in this state before anybody looked is not counted."
    ),
    source="DCGM_FI_DEV_ROW_REMAP_FAILURE of dcgm-exporter",
    sql="""\
-- One row per GPU and instant before $as_of_ms at which its remapping was first seen to fail.
select distinct
    cluster,
    gpu_model,
    node,
    device,
    at_ms,
    1 as value
from gpu_fault
where kind = 'row_remap_failure' and earliest_ms > 0 and at_ms < $as_of_ms
""",
    labels=("cluster", "gpu_model"),
    dimensions=("cluster", "gpu_model", "node"),
    kind=MetricKind.COUNTER,
    # Whoever runs there may be hit next.
    open_labels=("node",),
    pages=(Page.CLUSTER,),
)
