"""Who waits, how long, against what was promised."""

from datetime import timedelta

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, side_by_side, told
from domain.metric import Page
from domain.report import Report

WINDOW = timedelta(days=7)
_WAITS = (
    Shown(metric="queue_depth_workloads"),
    Shown(metric="queue_depth_gpus"),
    Shown(
        metric="queue_wait_seconds",
        title="p50 wait",
        where={"quantile": "0.5", "estimator": "censored"},
    ),
    Shown(
        metric="queue_wait_seconds",
        title="p99 wait",
        where={"quantile": "0.99", "estimator": "censored"},
    ),
    Shown(metric="starvation_index_seconds"),
    Shown(metric="past_target_workloads"),
)


def _build(answers: Answers, question: ReportQuestion) -> Report:
    past = ask(answers, question, "past_target_workloads", by=(), window=WINDOW)
    depth = ask(answers, question, "queue_depth_workloads", by=(), window=WINDOW)
    sections = tuple(
        side_by_side(
            answers, question, key=key, title=title, by=by, metrics=_WAITS, window=WINDOW, page=Page.QUEUES
        )
        for key, title, by in (
            ("classes", "By service class", ("service_class",)),
            ("queues", "By queue and class", ("queue", "service_class")),
            ("teams", "By team", ("team",)),
        )
    )
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=depth.as_of_ms,
        window=question.window or WINDOW,
        lead=(
            f"{told(depth)} workloads wait now, {told(past)} of them longer than their class was promised.",
        ),
        sections=sections,
    )


REPORT = Builder(
    name="waits",
    title="Waiting",
    question="Who waits, how long, and against which target?",
    window=WINDOW,
    build=_build,
)
