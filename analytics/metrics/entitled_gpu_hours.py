"""Entitled GPU-hours of a window."""

from analytics.fairness.shares import DIMENSIONS, LABELS, LEDGER_ROWS, from_ledger
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="entitled_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Entitled GPU-hours",
    definition=(
        "GPU-hours that an entity should have had in the window. Debt at the window's end = debt at its"
        " start + entitled - received - forgiven."
    ),
    source="definition of this product",
    sql=LEDGER_ROWS,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=from_ledger(lambda account: account.entitled, across_models=True),
    windowed=True,
    pages=(Page.FAIRNESS,),
)
