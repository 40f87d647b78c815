"""Who is preempted or starts again, for whom, and whether that keeps the rules."""

from datetime import timedelta
from functools import partial

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, side_by_side, telling, told
from domain.metric import Page
from domain.report import Report

WINDOW = timedelta(days=7)
_RATES = (
    Shown(metric="preemptions_per_attempt_ratio"),
    Shown(metric="preemptions_per_1000_gpu_hours"),
    Shown(metric="restarts_per_attempt_ratio"),
    Shown(metric="restarts_per_1000_gpu_hours"),
)
_RULES = (Shown(metric="protection_broken_preemptions"), Shown(metric="tier_rule_broken_preemptions"))


def _build(answers: Answers, question: ReportQuestion) -> Report:
    rules = [ask(answers, question, shown.metric, by=(), window=WINDOW) for shown in _RULES]
    table = partial(side_by_side, answers, question, window=WINDOW, page=Page.QUEUES)
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=rules[0].as_of_ms,
        window=question.window or WINDOW,
        lead=(
            f"{told(rules[0])} preemptions hit work that was protected, for it had been preempted before.",
            f"{told(rules[1])} preemptions took others than the lowest class that was there.",
        ),
        sections=(
            table(key="classes", title="Rates by service class", by=("service_class",), metrics=_RATES),
            table(key="teams", title="Rates by team", by=("team",), metrics=_RATES),
            table(key="rules", title="Rules broken, by team", by=("team",), metrics=_RULES),
            *telling(
                table(
                    key="causes",
                    title="Who was preempted for whom, ever",
                    by=("victim_class", "preemptor_class", "mechanism"),
                    metrics=(Shown(metric="preemptions_total", title="Preemptions"),),
                    sort_by="preemptions_total",
                )
            ),
            *telling(
                table(
                    key="evictions",
                    title="Other evictions, ever",
                    by=("reason",),
                    metrics=(Shown(metric="evictions_total", title="Evictions"),),
                    sort_by="evictions_total",
                )
            ),
        ),
    )


REPORT = Builder(
    name="preemptions",
    title="Preemption and restarts",
    question="Who is preempted or starts again, for whom, and are the rules kept?",
    window=WINDOW,
    build=_build,
)
