"""Which share of a team's budget of money is burned."""

from analytics.budgets import MONEY, SPENT_SO_FAR, alerts, of_budgets
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="budget_money_burned_ratio",
    unit=Unit.RATIO,
    title="Share of the money burned",
    definition=(
        "Effective cost of what a team has held since its day, week or month began, over its budget of money"
        " for it; 0.8 and 1 are where people want to hear of it. Above 1 the budget is passed."
    ),
    source="settings of the site",
    sql=SPENT_SO_FAR,
    labels=("team",),
    dimensions=("team",),
    extra_labels=("period",),
    compute=of_budgets(lambda budget: budget.burned / budget.budget, kind=MONEY),
    pages=(Page.CHARGEBACK,),
    alerts=alerts("Money", burned="spent", of="money"),
)
