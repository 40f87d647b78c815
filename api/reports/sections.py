"""Sections of reports: metrics side by side, one row per combination of labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from api.answers import Answers, MetricAnswer, Question, ReportQuestion
from domain.metric import Page, Sample
from domain.report import Cell, Column, Figure, Section

TITLES: Final[Mapping[str, str]] = {
    "cluster": "Cluster",
    "team": "Team",
    "queue": "Queue",
    "pool": "Pool",
    "gpu_model": "GPU model",
    "service_class": "Class",
    "priority_class": "Priority class",
    "gang_size": "Gang size",
    "cause": "Cause",
    "node": "Node",
    "user_name": "User",
    "reason": "Reason",
    "blocker": "In the way",
    "rule": "Rule",
    "mechanism": "By",
    "victim_class": "Of class",
    "preemptor_class": "For class",
    "capacity_type": "Kind",
    "fits": "Would do",
    "period": "Period",
    "resource": "Hours of",
    "xid": "XID",
}
NONE: Final = "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    A metric in a column; `where` picks one of its extra labels, for example a quantile.

    The title is the metric's own unless one is given. So is the unit: `times` reads a ratio above 1.
    """

    metric: str
    title: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""

    @property
    def key(self) -> str:
        """The column's key, unique in a section."""
        return "_".join((self.metric, *self.where.values()))


def side_by_side(  # noqa: PLR0913 - a section has that many parts, all named
    answers: Answers,
    question: ReportQuestion,
    *,
    key: str,
    title: str,
    by: tuple[str, ...],
    metrics: Sequence[Shown],
    apart: tuple[str, ...] = (),
    window: timedelta | None = None,
    sort_by: str = "",
    note: str = "",
    page: Page | None = None,
) -> Section:
    """
    Metrics by the same labels as one table.

    Args:
        answers: what the reader may see.
        question: instant, window and filters; a filter that a metric does not have is an error.
        key: of the section.
        title: of the section.
        by: labels that make the rows.
        metrics: the columns, in order.
        apart: labels that the metrics add, which make rows too.
        window: of a question without one.
        sort_by: key of the column to order by, the largest first; by default rows go by label.
        note: what the reader should know.
        page: where the dashboard shows the same.
    """
    asked = {
        name: ask(answers, question, name, by=by, window=window)
        for name in dict.fromkeys(shown.metric for shown in metrics)
    }
    heads = (*by, *apart)
    rows: dict[tuple[str, ...], dict[str, Cell]] = {}
    for shown in metrics:
        for sample in asked[shown.metric].rows:
            labels = sample.labels
            if not set(heads) <= labels.keys() or not shown.where.items() <= labels.items():
                continue
            line = tuple(labels[name] for name in heads)
            rows.setdefault(line, _names(heads, line))[shown.key] = figure(sample)
    looks_back = any(answer.window for answer in asked.values())
    ordered = [rows[line] for line in sorted(rows)]
    if sort_by:
        ordered.sort(key=lambda row: _amount(row.get(sort_by)), reverse=True)
    return Section(
        key=key,
        title=title,
        columns=(
            *(Column(key=name, title=TITLES.get(name, name)) for name in heads),
            *(_column(answers, shown, asked[shown.metric], windowed=looks_back) for shown in metrics),
        ),
        rows=tuple(ordered),
        note=note,
        page=page,
        window=question.window or window,
    )


def only(question: ReportQuestion, *names: str) -> ReportQuestion:
    """The question with filters by these labels: of figures that are the same whatever the others are."""
    kept = {name: values for name, values in question.filters.items() if name in names}
    return replace(question, filters=kept)


def telling(section: Section) -> tuple[Section, ...]:
    """The section, unless none of its figures is known: for what many a site does not have."""
    known = any(
        isinstance(cell, Figure) and cell.value is not None for row in section.rows for cell in row.values()
    )
    return (section,) if known else ()


def ask(
    answers: Answers,
    question: ReportQuestion,
    metric: str,
    *,
    by: tuple[str, ...],
    window: timedelta | None = None,
) -> MetricAnswer:
    """One metric's answer to a report's question."""
    return answers.metric(
        metric,
        Question(
            as_of_ms=question.as_of_ms, window=question.window or window, by=by, filters=question.filters
        ),
    )


def figure(sample: Sample) -> Figure:
    """A metric's sample as a figure of a report."""
    return Figure(
        value=sample.value,
        lower_bound=sample.lower_bound,
        few=sample.few,
        undefined_because=sample.undefined_because,
    )


def told(answer: MetricAnswer) -> str:
    """
    The sum of an answer in a sentence, `at least` where one of its values is a lower bound.

    An undefined value counts as nothing, as does an answer without rows.
    """
    whole = sum(sample.value or 0.0 for sample in answer.rows)
    return f"{'at least ' if any(sample.lower_bound for sample in answer.rows) else ''}{whole:g}"


def largest(samples: Iterable[Sample]) -> Sample | None:
    """The sample with the largest value; None where none has one."""
    known = [sample for sample in samples if sample.value is not None]
    return max(known, key=lambda sample: sample.value or 0.0, default=None)


def _names(by: tuple[str, ...], line: tuple[str, ...]) -> dict[str, Cell]:
    return {name: value or NONE for name, value in zip(by, line, strict=True)}


def _column(answers: Answers, shown: Shown, answer: MetricAnswer, *, windowed: bool) -> Column:
    title = shown.title or answers.registry()[shown.metric].title
    if windowed and not answer.window and "now" not in title.split():
        # Beside figures of the window, those of the instant say so.
        title = f"{title}, now"
    return Column(key=shown.key, title=title, unit=shown.unit or answer.unit, metric=shown.metric)


def _amount(cell: Cell | None) -> float:
    return cell.value if isinstance(cell, Figure) and cell.value is not None else float("-inf")
