"""Hell ratio."""

from analytics.wastage.asked import GPU_TIME, TIME_ADDS, TIME_APART, WASTE_DIMENSIONS, ratios
from analytics.wastage.ratios import hell_ratio
from analytics.wastage.rules import rules_of
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="hell_ratio",
    unit=Unit.RATIO,
    title="Hell ratio",
    definition=(
        "H / (H + useful) in the window, H being what crashes surely lost, back-off, start-up of attempts "
        "that follow an own failure, and re-queue wait after own failures times the GPUs requested. "
        "Undefined where the activity of too much running time is unknown: nobody is accused on less."
    ),
    source="definitions of this product",
    sql=GPU_TIME,
    labels=("cluster", "team"),
    dimensions=WASTE_DIMENSIONS,
    compute=ratios(lambda bill, ask: hell_ratio(bill, rules=rules_of(ask.policy))),
    windowed=True,
    adds=TIME_ADDS,
    apart=TIME_APART,
    pages=(Page.WASTE,),
    rests_on_samples=True,
)
