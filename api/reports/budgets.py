"""Budgets of GPU-hours: what is burned of them, and what will be."""

from api.answers import Answers, ReportQuestion
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


def _build(answers: Answers, question: ReportQuestion) -> Report:
    burned = ask(answers, question, "budget_burned_ratio", by=("team",))
    known = [row for row in burned.rows if row.value is not None]
    over = sorted({row.labels["team"] for row in known if (row.value or 0.0) >= 1})
    if not known:
        reasons = sorted({row.undefined_because for row in burned.rows})
        lead = f"No budget is known: {reasons[0]}." if reasons else "No budget is known."
    else:
        lead = f"Over their budget: {', '.join(over)}." if over else "No team is over its budget."
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=burned.as_of_ms,
        window=None,
        lead=(lead,),
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
        ),
    )


REPORT = Builder(
    name="budgets",
    title="Budgets of GPU-hours",
    question="Which team burns its GPU-hours faster than was agreed?",
    window=None,
    build=_build,
)
