"""For what workloads wait: hours by reason, whose, and what would shorten waiting most."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from analytics.why.relief import Share, most_costly
from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import NONE, Shown, ask, side_by_side
from domain.metric import Page
from domain.report import Cell, Column, Figure, Report, Section

WINDOW = timedelta(days=7)
_NAMED = 4
_HOURS = "wait_reason_hours"
_SHOWN = (Shown(metric=_HOURS, title="Hours waited"),)
_TOLD = (Shown(metric="eta_coverage_ratio"),)
_NOW = (Shown(metric="queue_depth_by_reason_workloads"), Shown(metric="queue_depth_by_reason_gpus"))


def _build(answers: Answers, question: ReportQuestion) -> Report:
    hours = ask(answers, question, _HOURS, by=("reason",), window=WINDOW)
    by_reason = sorted(((one.value or 0.0, one.labels.get("reason", "")) for one in hours.rows), reverse=True)
    blockers = ask(answers, question, _HOURS, by=("queue", "reason", "blocker"), window=WINDOW)
    shares = most_costly(
        (one.labels["queue"], one.labels["reason"], one.labels["blocker"], one.value)
        for one in blockers.rows
        if one.value
    )
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=hours.as_of_ms,
        window=question.window or WINDOW,
        lead=_lead(by_reason, shares),
        sections=tuple(_sections(answers, question, shares)),
    )


def _lead(by_reason: list[tuple[float, str]], shares: list[Share]) -> tuple[str, ...]:
    total = sum(hours for hours, _ in by_reason)
    if not total:
        return ("Nobody waited.",)
    named = ", ".join(f"{hours:,.1f} {reason}" for hours, reason in by_reason[:_NAMED] if hours)
    more = sum(hours for hours, _ in by_reason[_NAMED:])
    rest = f", {more:,.1f} for other reasons" if more else ""
    lead = (f"Of {total:,.1f} hours waited: {named}{rest}.",)
    if not shares:
        return lead
    first = shares[0]
    where = f" ({first.blocker})" if first.blocker else ""
    relief = f": {first.relief}" if first.relief else ""
    return (
        *lead,
        (
            f"Most is waited in queue {first.queue or NONE}; {first.hours:,.1f} of its"
            f" {first.of_hours:,.1f} hours for {first.reason}{where}{relief}."
        ),
    )


def _sections(answers: Answers, question: ReportQuestion, shares: list[Share]) -> Iterator[Section]:
    table = partial(
        side_by_side, answers, question, metrics=_SHOWN, window=WINDOW, page=Page.QUEUES, sort_by=_HOURS
    )
    yield _most_costly(question, shares)
    yield table(key="reasons", title="By reason", by=("reason",))
    yield table(key="classes", title="By service class", by=("service_class", "reason"))
    yield table(key="queues", title="By queue", by=("queue", "reason"))
    yield table(key="teams", title="By team", by=("team", "reason"))
    yield side_by_side(
        answers,
        question,
        key="now",
        title="Who waits now",
        by=("cluster", "service_class", "reason"),
        metrics=_NOW,
        page=Page.QUEUES,
    )
    yield side_by_side(
        answers,
        question,
        key="told",
        title="How often starts came as they were told",
        by=("cluster", "service_class"),
        metrics=_TOLD,
        window=WINDOW,
        note="Of intervals that hold 80 of 100 starts if all is well.",
        page=Page.QUEUES,
    )


def _most_costly(question: ReportQuestion, shares: list[Share]) -> Section:
    return Section(
        key="shorten",
        title="What would shorten waiting most, by queue",
        columns=(
            Column(key="queue", title="Queue"),
            Column(key="reason", title="Reason"),
            Column(key="blocker", title="In the way"),
            Column(key="hours", title="Hours for it", unit="hours", metric=_HOURS),
            Column(key="of_hours", title="Of hours waited", unit="hours", metric=_HOURS),
            Column(key="relief", title="What could be done"),
        ),
        rows=tuple(_row(share) for share in shares),
        note="Of each queue what was waited for longest.",
        page=Page.QUEUES,
        window=question.window or WINDOW,
    )


def _row(share: Share) -> dict[str, Cell]:
    return {
        "queue": share.queue or NONE,
        "reason": share.reason,
        "blocker": share.blocker,
        "hours": Figure(value=share.hours),
        "of_hours": Figure(value=share.of_hours),
        "relief": share.relief,
    }


REPORT = Builder(
    name="why",
    title="Reasons for waiting",
    question="For what do workloads wait, whose, and what would shorten it most?",
    window=WINDOW,
    build=_build,
)
