"""What users can write better."""

from datetime import timedelta

from analytics.lint.rules import BREAKS, MEANINGS, Rule
from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, figure, side_by_side
from domain.metric import Page
from domain.report import Column, Report, Section

WINDOW = timedelta(days=7)


def _build(answers: Answers, question: ReportQuestion) -> Report:
    found = ask(answers, question, "lint_findings_workloads", by=(), window=WINDOW)
    figures = {sample.labels["rule"]: figure(sample) for sample in found.rows if "rule" in sample.labels}
    broken = [rule for rule in BREAKS if rule in figures and figures[rule].value]
    rules = Section(
        key="rules",
        title="By rule",
        columns=(
            Column(key="rule", title="Rule"),
            Column(key="meaning", title="What a finding says of a workload"),
            Column(key="findings", title="Workloads", unit=found.unit, metric="lint_findings_workloads"),
        ),
        rows=tuple(
            {"rule": str(rule), "meaning": MEANINGS[rule], "findings": figures[rule]}
            for rule in Rule
            if rule in figures
        ),
        note="Not observed: the rule rests on fields that are not collected, so it is not known to be kept.",
        page=Page.POLICY,
    )
    by_team = side_by_side(
        answers,
        question,
        key="teams",
        title="By team",
        by=("team",),
        metrics=[
            Shown(metric="lint_findings_workloads", title=rule.replace("_", " "), where={"rule": str(rule)})
            for rule in BREAKS
        ],
        window=WINDOW,
        page=Page.POLICY,
    )
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=found.as_of_ms,
        window=question.window or WINDOW,
        lead=(
            f"{len(broken)} of {len(BREAKS)} rules that can be observed are broken by some workload."
            if figures
            else "No workload asked for GPUs.",
        ),
        sections=(rules, by_team),
    )


REPORT = Builder(
    name="lint",
    title="Lint",
    question="Which workloads ask for what costs others, or themselves?",
    window=WINDOW,
    build=_build,
    rests_on_samples=True,
)
