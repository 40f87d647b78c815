"""Which share of a team's budget is burned."""

from analytics.budgets import HELD_SO_FAR, alerts, of_budgets
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="budget_burned_ratio",
    unit=Unit.RATIO,
    title="Share of the budget burned",
    definition=(
        "GPU-hours that a team has held since its day, week or month began, over its budget for it; 0.8 and"
        " 1 are where people want to hear of it. Above 1 the budget is passed."
    ),
    source="settings of the site",
    sql=HELD_SO_FAR,
    labels=("team",),
    dimensions=("team",),
    extra_labels=("period",),
    compute=of_budgets(lambda budget: budget.burned / budget.budget),
    pages=(Page.CHARGEBACK,),
    alerts=alerts("Hour", burned="burned", of="GPU-hours"),
)
