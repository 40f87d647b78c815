"""Which share of a team's budget of money is burned."""

from analytics.budgets import MONEY, SPENT_SO_FAR, of_budgets
from domain.alert import AlertRule, Comparison, Limit, Severity
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
    alerts=(
        AlertRule(
            name="GpuMoneyBudgetNearlyBurned",
            summary="team {team} has spent {value} of its money of the {period}",
            description="{value} of the budget of the {period} is spent; this is told from {limit} on.",
            link="chargeback?team={team}",
            limit=Limit(times=0.8),
            comparison=Comparison.AT_LEAST,
            identity=("team", "period"),
            severity=Severity.INFO,
            inhibited_by=("GpuMoneyBudgetBurned",),
        ),
        AlertRule(
            name="GpuMoneyBudgetBurned",
            summary="team {team} has spent all of its money of the {period}: {value}",
            description="{value} of the budget of the {period} is spent; this is told from {limit} on.",
            link="chargeback?team={team}",
            limit=Limit(times=1.0),
            comparison=Comparison.AT_LEAST,
            identity=("team", "period"),
        ),
    ),
)
