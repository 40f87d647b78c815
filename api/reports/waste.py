"""Who wastes GPU-time, how, and what work was lost."""

from datetime import timedelta

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import NONE, Shown, ask, figure, largest, only, side_by_side, telling
from domain.metric import Page
from domain.report import Report, Section

WINDOW = timedelta(days=7)
_WASTE = (
    Shown(metric="held_gpu_hours", title="Held"),
    Shown(metric="wasted_gpu_hours", title="Wasted"),
    Shown(metric="wastage_ratio"),
    Shown(metric="hell_ratio"),
    Shown(metric="work_lost_gpu_hours"),
    Shown(metric="work_lost_at_most_gpu_hours"),
    Shown(metric="activity_known_ratio", title="Activity known"),
)
_NOTE = (
    "Wasted is what the holder could have spared; losses to preemption and infrastructure are shown and never"
    " charged. ≥ stands where the activity of some time is unknown: unknown is neither useful nor wasted."
)


_AT_RISK = (
    Shown(metric="at_risk_gpu_hours"),
    Shown(metric="checkpoint_age_over_budget_workloads"),
    Shown(metric="never_active_gpus"),
)
_FITS = "The smallest device on which the most memory that was used would fit with 20 % to spare."


def _build(answers: Answers, question: ReportQuestion) -> Report:
    held = ask(answers, question, "held_gpu_hours", by=(), window=WINDOW)
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=held.as_of_ms,
        window=question.window or WINDOW,
        lead=(_most(answers, question),),
        sections=(
            *(
                side_by_side(
                    answers,
                    question,
                    key=key,
                    title=title,
                    by=by,
                    metrics=_WASTE,
                    window=WINDOW,
                    sort_by="wasted_gpu_hours",
                    note=_NOTE if key == "teams" else "",
                    page=Page.WASTE,
                )
                for key, title, by in (
                    ("teams", "By team", ("team",)),
                    ("queues", "By queue", ("queue",)),
                    ("models", "By GPU model", ("gpu_model",)),
                    ("classes", "By service class", ("service_class",)),
                    ("users", "By user", ("team", "user_name")),
                )
            ),
            _causes(answers, question),
            side_by_side(
                answers,
                question,
                key="risk",
                title="At risk and never active, by team, now",
                by=("team",),
                metrics=_AT_RISK,
                sort_by="at_risk_gpu_hours",
                page=Page.WASTE,
            ),
            *telling(
                side_by_side(
                    answers,
                    question,
                    key="fits",
                    title="Which device would do, by team",
                    by=("team",),
                    apart=("fits",),
                    metrics=(Shown(metric="right_size_gpus", title="GPUs"),),
                    note=_FITS,
                    page=Page.WASTE,
                )
            ),
            side_by_side(
                answers,
                only(question, "cluster", "gpu_model"),
                key="goodput",
                title="Useful part of what there is, by GPU model",
                by=("cluster", "gpu_model"),
                metrics=(Shown(metric="goodput_ratio"),),
                window=WINDOW,
                page=Page.WASTE,
            ),
        ),
    )


def _causes(answers: Answers, question: ReportQuestion) -> Section:
    return side_by_side(
        answers,
        question,
        key="causes",
        title="What held GPU-time was for",
        by=("team", "cause"),
        metrics=(Shown(metric="held_gpu_hours", title="GPU-hours"),),
        window=WINDOW,
        note="Each second held has exactly one cause, so the causes of a team sum to what it held.",
        page=Page.WASTE,
    )


def _most(answers: Answers, question: ReportQuestion) -> str:
    """The team that wastes most, in a sentence."""
    wasted = ask(answers, question, "wasted_gpu_hours", by=("team",), window=WINDOW)
    most = largest(wasted.rows)
    if most is None:
        return "No GPU was held in the window."
    team = most.labels.get("team") or NONE
    bound = "at least " if most.lower_bound else ""
    if not figure(most).value:
        unknown = ", as far as the activity of GPUs is known" if most.lower_bound else ""
        return f"No team wasted GPU-time in the window{unknown}."
    return f"{team} wasted most: {bound}{most.value or 0:.1f} GPU-hours."


REPORT = Builder(
    name="waste",
    title="Waste",
    question="Who wastes GPU-time, how, and what work was lost?",
    window=WINDOW,
    build=_build,
    rests_on_samples=True,
)
