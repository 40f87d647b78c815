"""Whether the site's promises are kept: the interactive reserve, domination, the queue's cap."""

from collections import Counter
from datetime import timedelta

from api.answers import Answers, ListQuestion, MetricAnswer, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, only, side_by_side, telling, told
from domain.metric import Page
from domain.report import Cell, Column, Figure, Report, Section

WINDOW = timedelta(days=7)
FLOOD_WINDOW = timedelta(hours=1)
POOL = ("cluster", "gpu_model")
_RESERVE = tuple(
    Shown(metric=name)
    for name in (
        "interactive_reserve_shortfall_gpus",
        "interactive_reserve_shortfall_gpu_hours",
        "free_gpus",
        "preemptible_gpus",
        "interactive_domination_ratio",
        "interactive_domination_users",
    )
)
_WAITING = ("queued", "checking", "placing")
_SUBMITTERS_LOOKED_AT = 1000
_SUBMITTERS_SHOWN = 20


def _build(answers: Answers, question: ReportQuestion) -> Report:
    missing = ask(answers, question, "interactive_reserve_shortfall_gpus", by=())
    users = ask(answers, question, "interactive_domination_users", by=())
    full = ask(answers, question, "queue_cap_ratio", by=("cluster",))
    thresholds = ask(answers, question, "policy_threshold_ratio", by=("rule",))
    warned = _threshold(thresholds, "queue_cap_warn_ratio")
    near = [sample.labels["cluster"] for sample in full.rows if (sample.value or 0.0) >= warned]
    known = any(sample.value is not None for sample in missing.rows)
    lead: tuple[str, ...] = (
        f"{told(missing)} GPUs are missing from the interactive reserve now.",
        f"Users who hold more of the interactive pool now than one user may: {told(users)}.",
        f"The queue is near its cap in {', '.join(near)} now." if near else "No queue is near its cap now.",
    )
    if not known:
        lead = ("No node with GPUs is known, so there is no reserve to keep.",)
    sections = (
        side_by_side(
            answers,
            question,
            key="reserve",
            title="Interactive reserve and domination, by GPU model",
            by=POOL,
            metrics=_RESERVE,
            window=WINDOW,
            note="Users are counted, not named; whose waiting workloads fill the queue stands below.",
            page=Page.POLICY,
        ),
        side_by_side(
            answers,
            question,
            key="backpressure",
            title="The queue against its cap",
            by=("cluster",),
            metrics=(
                Shown(metric="queue_depth_workloads"),
                Shown(metric="queue_cap_ratio"),
                Shown(metric="queue_cap_seconds"),
            ),
            window=FLOOD_WINDOW,
            page=Page.POLICY,
        ),
        side_by_side(
            answers,
            question,
            key="flood",
            title="Whose submissions fill the queue",
            by=("cluster", "team"),
            metrics=(Shown(metric="submitted_workloads"), Shown(metric="queue_depth_workloads")),
            window=FLOOD_WINDOW,
            sort_by="submitted_workloads",
            page=Page.POLICY,
        ),
        _submitters(answers, question),
        side_by_side(
            answers,
            question,
            key="thresholds",
            title="Thresholds that apply",
            by=("rule",),
            metrics=(
                Shown(metric="policy_threshold_ratio", title="Ratio"),
                Shown(metric="policy_threshold_seconds", title="Time"),
                Shown(metric="policy_threshold_days", title="Days"),
            ),
            page=Page.POLICY,
        ),
        side_by_side(
            answers,
            question,
            key="preemptions",
            title="Preemptions against the rules, by team",
            by=("team",),
            metrics=(
                Shown(metric="protection_broken_preemptions"),
                Shown(metric="tier_rule_broken_preemptions"),
            ),
            window=WINDOW,
            page=Page.POLICY,
        ),
        *telling(
            side_by_side(
                answers,
                only(question, "cluster", "team"),
                key="denials",
                title="Pods refused, ever",
                by=("team", "cause"),
                metrics=(Shown(metric="pod_denials_total", title="Refused"),),
                sort_by="pod_denials_total",
                page=Page.POLICY,
            )
        ),
    )
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=missing.as_of_ms,
        window=question.window or WINDOW,
        lead=lead,
        sections=sections,
    )


def _submitters(answers: Answers, question: ReportQuestion) -> Section:
    """Users with most waiting workloads, of those whose workloads the reader may see."""
    listing = answers.workloads(
        ListQuestion(
            as_of_ms=question.as_of_ms,
            states=_WAITING,
            filters=question.filters,
            page_size=_SUBMITTERS_LOOKED_AT,
        )
    )
    waiting = Counter((str(row["team"]), str(row["user"])) for row in listing.rows)
    most = sorted(waiting.items(), key=lambda item: (-item[1], item[0]))[:_SUBMITTERS_SHOWN]
    seen = len(listing.rows)
    return Section(
        key="submitters",
        title="Who waits most, by user",
        columns=(
            Column(key="team", title="Team"),
            Column(key="user", title="User"),
            Column(
                key="waiting", title="Waiting workloads", unit="workloads", metric="queue_depth_workloads"
            ),
        ),
        rows=tuple(_submitter(team, user, count) for (team, user), count in most),
        note=f"Counted over the newest {seen} of {listing.total} waiting workloads."
        if seen < listing.total
        else "",
        page=Page.POLICY,
    )


def _submitter(team: str, user: str, count: int) -> dict[str, Cell]:
    return {"team": team, "user": user or "(not known)", "waiting": Figure(value=float(count))}


def _threshold(answer: MetricAnswer, rule: str) -> float:
    return next(sample.value or 0.0 for sample in answer.rows if sample.labels["rule"] == rule)


REPORT = Builder(
    name="policy",
    title="Policy",
    question="Is there room for interactive work, does one user take it, and who fills the queue?",
    window=WINDOW,
    build=_build,
)
