"""Received GPU-hours of a window."""

from analytics.fairness.shares import DIMENSIONS, LABELS, LEDGER_ROWS, from_ledger
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="received_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Received GPU-hours",
    definition=(
        "GPU-hours that an entity held in the pool in the window, the counterpart of those entitled."
    ),
    source="definition of this product",
    sql=LEDGER_ROWS,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=from_ledger(lambda account: account.received, across_models=True),
    windowed=True,
    pages=(Page.FAIRNESS,),
)
