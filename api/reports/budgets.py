"""Budgets of GPU-hours and of money: what is burned of them, and what will be."""

from api.answers import Answers, MetricAnswer, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, side_by_side
from domain.metric import Page
from domain.report import Report

_BUDGETS = (
    Shown(metric="budget_gpu_hours", title="Budget"),
    Shown(metric="budget_burned_gpu_hours", title="Burned"),
    Shown(metric="budget_burned_ratio", title="Of the budget"),
    Shown(metric="budget_forecast_ratio", title="At the end, as it goes"),
)
_OF_MONEY = (
    Shown(metric="budget_money", title="Budget"),
    Shown(metric="budget_burned_money", title="Burned"),
    Shown(metric="budget_money_burned_ratio", title="Of the budget"),
    Shown(metric="budget_money_forecast_ratio", title="At the end, as it goes"),
)


def _lead(burned: MetricAnswer, of: str) -> str:
    """Who is over, or why nothing is known."""
    known = [row for row in burned.rows if row.value is not None]
    over = sorted({row.labels["team"] for row in known if (row.value or 0.0) >= 1})
    if not known:
        reasons = sorted({row.undefined_because for row in burned.rows})
        return f"No budget of {of} is known: {reasons[0]}." if reasons else f"No budget of {of} is known."
    return (
        f"Over their budget of {of}: {', '.join(over)}." if over else f"No team is over its budget of {of}."
    )


def _build(answers: Answers, question: ReportQuestion) -> Report:
    burned, spent = (
        ask(answers, question, name, by=("team",))
        for name in ("budget_burned_ratio", "budget_money_burned_ratio")
    )
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=burned.as_of_ms,
        window=None,
        lead=(_lead(burned, "GPU-hours"), _lead(spent, "money")),
        sections=(
            side_by_side(
                answers,
                question,
                key="teams",
                title="GPU-hours of the day, week and month that go on",
                by=("team",),
                apart=("period",),
                metrics=_BUDGETS,
                page=Page.CHARGEBACK,
            ),
            side_by_side(
                answers,
                question,
                key="money",
                title="Money of the day, week and month that go on",
                by=("team",),
                apart=("period",),
                metrics=_OF_MONEY,
                page=Page.CHARGEBACK,
            ),
        ),
    )


REPORT = Builder(
    name="budgets",
    title="Budgets",
    question="Which team burns its GPU-hours or its money faster than was agreed?",
    window=None,
    build=_build,
)
