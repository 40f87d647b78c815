"""Where a team's budget of money will be at the end of its period."""

from analytics.budgets import MONEY, SPENT_SO_FAR, of_budgets
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="budget_money_forecast_ratio",
    unit=Unit.RATIO,
    title="Budget of money, forecast",
    definition=(
        "Share of the budget of money that will be burned at the end of the day, week or month, if the team"
        " holds GPUs at the pace of the period so far; flagged few in its first tenth. Above 1 the budget"
        " will not last."
    ),
    source="settings of the site",
    sql=SPENT_SO_FAR,
    labels=("team",),
    dimensions=("team",),
    extra_labels=("period",),
    compute=of_budgets(lambda budget: budget.forecast / budget.budget, kind=MONEY, forecast=True),
    pages=(Page.CHARGEBACK,),
)
