"""Jobs and hours as Open XDMoD counts them, to be laid beside its own."""

from datetime import timedelta
from functools import partial

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, side_by_side, told
from domain.metric import Page
from domain.report import Report

WINDOW = timedelta(days=7)
_MEAN, _ERROR = {"statistic": "mean"}, {"statistic": "standard_error"}
_JOBS = (
    Shown(metric="xdmod_submitted_jobs", title="Submitted, by day", where={"period": "day"}),
    Shown(metric="xdmod_started_jobs", title="Started"),
    Shown(metric="xdmod_running_jobs", title="Running"),
    Shown(metric="xdmod_ended_jobs", title="Ended"),
    Shown(metric="xdmod_active_users", title="Users"),
    Shown(metric="xdmod_wait_hours", title="Wait hours"),
    Shown(metric="xdmod_wait_per_job_hours", title="Wait per job", where=_MEAN),
    Shown(metric="xdmod_wait_per_job_hours", title="Its error", where=_ERROR),
    Shown(metric="xdmod_expansion_factor_ratio", title="Expansion factor", unit="times"),
)
_HOURS = (
    Shown(metric="xdmod_used_hours", title="Used"),
    Shown(metric="xdmod_used_per_job_hours", title="Used per job", where=_MEAN),
    Shown(metric="xdmod_used_per_job_hours", title="Its error", where=_ERROR),
    Shown(metric="xdmod_weighted_size_cpus", title="CPUs of a job, by use"),
)


def _build(answers: Answers, question: ReportQuestion) -> Report:
    ended = ask(answers, question, "xdmod_ended_jobs", by=(), window=WINDOW)
    table = partial(side_by_side, answers, question, window=WINDOW, page=Page.QUEUES)
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=ended.as_of_ms,
        window=question.window or WINDOW,
        lead=(
            f"{told(ended)} jobs ended.",
            "A wait is booked when its job starts, hours on the time that they overlap.",
        ),
        sections=(
            table(key="queues", title="Jobs and waits, by queue", by=("cluster", "queue"), metrics=_JOBS),
            table(
                key="hours",
                title="Hours, by queue",
                by=("cluster", "queue"),
                apart=("resource",),
                metrics=_HOURS,
            ),
        ),
    )


REPORT = Builder(
    name="xdmod",
    title="As Open XDMoD counts",
    question="Which figures would Open XDMoD show for the same jobs?",
    window=WINDOW,
    build=_build,
)
