"""Buy or tune: day by day, whether the GPUs are held, productive, and still waited for."""

from datetime import timedelta

from analytics.capacity.buy_or_tune import SENTENCES, Advice, Conditions, Day, advice
from analytics.capacity.buy_or_tune import Figure as Known
from analytics.thresholds import policy_of
from api.answers import Answers, MetricAnswer, Question, ReportQuestion, format_length
from api.reports.report import Builder
from api.reports.sections import Shown, ask, figure, side_by_side
from domain.errors import UsageError
from domain.metric import Page, Sample
from domain.policy import Policy
from domain.report import Cell, Column, Figure, Report, Section
from domain.window import format_instant

DAY = timedelta(days=1)
WINDOW = timedelta(days=7)
_DAY_MS = DAY // timedelta(milliseconds=1)
_MEDIAN = {"quantile": "0.5", "estimator": "censored"}
_WORDS = {True: "holds", False: "fails", None: "not known"}
_POOLS = tuple(
    Shown(metric=name)
    for name in (
        "capacity_gpus",
        "capacity_held_ratio",
        "capacity_productive_ratio",
        "fragmented_gpus",
        "cordoned_gpus",
        "unhealthy_gpus",
        "buying_days",
    )
)
_METRICS = {
    "held": "capacity_held_ratio",
    "productive": "capacity_productive_ratio",
    "wait": "queue_wait_seconds",
}
_UNITS = {"held": "ratio", "productive": "ratio", "wait": "seconds"}
_TITLES = {"held": "Held", "productive": "Productive", "wait": "p50 wait of batch"}


def _build(answers: Answers, question: ReportQuestion) -> Report:
    policy = _policy(answers, question)
    if question.window not in {None, policy.buy_of_days * DAY}:
        message = (
            f"report capacity, window {format_length(question.window)}: it judges the last"
            f" {policy.buy_of_days} days, one by one (policy.buy_of_days); leave the window out, or ask for"
            f" {policy.buy_of_days}d"
        )
        raise UsageError(message)
    now = ask(answers, question, "capacity_gpus", by=())
    days = [
        _figures(answers, question, now.as_of_ms - place * _DAY_MS) for place in range(policy.buy_of_days)
    ]
    told = advice([_day(each) for each in days], policy)
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=now.as_of_ms,
        window=policy.buy_of_days * DAY,
        lead=_lead(told, policy)
        if any(each["held"].value is not None for each in days)
        else (f"No node with GPUs is known on the last {policy.buy_of_days} days.",),
        sections=(
            _by_day(days, told, now.as_of_ms),
            side_by_side(
                answers,
                question,
                key="pools",
                title="By GPU model",
                by=("cluster", "gpu_model"),
                metrics=_POOLS,
                window=WINDOW,
                page=Page.CAPACITY,
            ),
        ),
    )


def _policy(answers: Answers, question: ReportQuestion) -> Policy:
    unfiltered = ReportQuestion(as_of_ms=question.as_of_ms)
    thresholds = [
        sample
        for unit in ("ratio", "seconds", "days")
        for sample in ask(answers, unfiltered, f"policy_threshold_{unit}", by=("rule",)).rows
    ]
    return policy_of(thresholds)


def _figures(answers: Answers, question: ReportQuestion, as_of_ms: int) -> dict[str, Figure]:
    """The three figures of the day before an instant."""
    return {
        key: _one(_asked(answers, question, name, as_of_ms), _MEDIAN if key == "wait" else {})
        for key, name in _METRICS.items()
    }


def _asked(answers: Answers, question: ReportQuestion, name: str, as_of_ms: int) -> MetricAnswer:
    filters = dict(question.filters)
    if name == "queue_wait_seconds":
        filters |= {"service_class": ("batch",)}
    return answers.metric(name, Question(as_of_ms=as_of_ms, window=DAY, by=(), filters=filters))


def _one(answer: MetricAnswer, where: dict[str, str]) -> Figure:
    samples: list[Sample] = [row for row in answer.rows if where.items() <= row.labels.items()] or [
        *answer.rows
    ]
    return figure(samples[0]) if samples else Figure(value=None, undefined_because="nothing was observed")


def _day(figures: dict[str, Figure]) -> Day:
    return Day.told(
        *(Known(value=figures[key].value, lower_bound=figures[key].lower_bound) for key in _METRICS)
    )


def _lead(told: Advice, policy: Policy) -> tuple[str, ...]:
    days = (
        f"All three conditions held on {told.days_for} of the last {policy.buy_of_days} days; "
        f"{policy.buy_days} are needed to buy."
    )
    erosion = f"Erosion: {policy.erosion_from_ratio:.0%} or more is held, and waits begin to grow."
    return (SENTENCES[told.verdict], days, *([erosion] if told.erosion else []))


def _by_day(days: list[dict[str, Figure]], told: Advice, as_of_ms: int) -> Section:
    columns = [Column(key="until", title="24 h until")]
    for key, title in _TITLES.items():
        columns += [
            Column(key=key, title=title, unit=_UNITS[key], metric=_METRICS[key]),
            Column(key=f"{key}_condition", title="Condition"),
        ]
    return Section(
        key="days",
        title="Conditions of buying, day by day",
        columns=(*columns, Column(key="all", title="Speaks for buying")),
        rows=tuple(
            _row(figures, judged, as_of_ms - place * _DAY_MS)
            for place, (figures, judged) in enumerate(zip(days, told.days, strict=True))
        ),
        note="A lower bound that falls short of its threshold, or an undefined figure, says nothing;"
        " but of GPUs that are not held none is productive.",
        page=Page.CAPACITY,
    )


def _row(figures: dict[str, Figure], judged: Conditions, until_ms: int) -> dict[str, Cell]:
    row: dict[str, Cell] = {"until": format_instant(until_ms), **figures}
    for key, holds in (("held", judged.held), ("productive", judged.productive), ("wait", judged.waits)):
        row[f"{key}_condition"] = _WORDS[holds]
    return row | {"all": {True: "yes", False: "no", None: "not known"}[judged.all_hold]}


REPORT = Builder(
    name="capacity",
    title="Capacity",
    question="Do we need more GPUs, or do we have to use better those that there are?",
    window=WINDOW,
    build=_build,
    rests_on_samples=True,
)
