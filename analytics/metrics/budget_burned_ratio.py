"""Which share of a team's budget is burned."""

from analytics.budgets import HELD_SO_FAR, of_budgets
from domain.alert import AlertRule, Comparison, Limit, Severity
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
    alerts=(
        AlertRule(
            name="GpuHourBudgetNearlyBurned",
            summary="team {team} has burned {value} of its GPU-hours of the {period}",
            description="{value} of the budget of the {period} is burned; this is told from {limit} on.",
            link="chargeback?team={team}",
            limit=Limit(times=0.8),
            comparison=Comparison.AT_LEAST,
            identity=("team", "period"),
            severity=Severity.INFO,
            inhibited_by=("GpuHourBudgetBurned",),
        ),
        AlertRule(
            name="GpuHourBudgetBurned",
            summary="team {team} has burned all of its GPU-hours of the {period}: {value}",
            description="{value} of the budget of the {period} is burned; this is told from {limit} on.",
            link="chargeback?team={team}",
            limit=Limit(times=1.0),
            comparison=Comparison.AT_LEAST,
            identity=("team", "period"),
        ),
    ),
)
