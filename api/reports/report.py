"""What a report file declares, and a report as the API gives it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from api.answers import Answers, Question, Record, ReportQuestion, format_length
from domain.errors import UsageError
from domain.observed import coverage_words
from domain.report import Cell, Report, Section
from domain.window import format_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """
    A report's declaration: `build` makes it for a reader, from what the reader may see.

    `window` is the window of a question without one; None where the report has no window. One that
    `rests_on_samples` of GPUs is only covered where their sources are read too.
    """

    name: str
    title: str
    question: str
    window: timedelta | None
    build: Callable[[Answers, ReportQuestion], Report]
    rests_on_samples: bool = False


def made(builder: Builder, answers: Answers, question: ReportQuestion) -> Record:
    """
    A report as the API gives it in JSON; its lead says it where part of the window was not observed.

    Raises:
        UsageError: the question has a window, and the report tells of an instant.
    """
    if builder.window is None and question.window is not None:
        message = (
            f"report {builder.name}, window {format_length(question.window)}: its figures are those of an"
            " instant; leave the window out, and choose the instant with as_of"
        )
        raise UsageError(message)
    # Its figures are of one instant, though "now" moves while they are made.
    question = replace(question, as_of_ms=answers.as_of_ms(question.as_of_ms))
    report = builder.build(answers, question)
    asked = Question(as_of_ms=report.as_of_ms, window=report.window, filters=question.filters)
    coverage = answers.coverage(asked, samples=builder.rests_on_samples)
    metrics = {column.metric for section in report.sections for column in section.columns if column.metric}
    hints = answers.hints(question.filters) + answers.refusals(asked, sorted(metrics))
    missing = coverage_words(coverage, windowed=report.window is not None)
    lead = (
        *(f"{hint[:1].upper()}{hint[1:]}" for hint in map(_sentence, hints)),
        *report.lead,
        *([f"Not complete: {missing}."] if missing else []),
    )
    return document(replace(report, lead=lead), coverage=coverage, hints=hints)


def document(report: Report, *, coverage: float | None = None, hints: Sequence[str] = ()) -> Record:
    """A report in JSON, with how much of it was observed and what is odd about the names asked for."""
    return {
        "report": report.name,
        "title": report.title,
        "as_of": format_instant(report.as_of_ms),
        "window": format_length(report.window) if report.window else None,
        "coverage": coverage,
        "hints": list(hints),
        "lead": list(report.lead),
        "sections": [_section(section) for section in report.sections],
    }


def _sentence(hint: str) -> str:
    return hint if hint.endswith("?") else f"{hint}."


def _section(section: Section) -> Record:
    return {
        "key": section.key,
        "title": section.title,
        "note": section.note,
        "page": str(section.page) if section.page else None,
        "window": format_length(section.window) if section.window else None,
        "columns": [
            {"key": column.key, "title": column.title, "unit": column.unit, "metric": column.metric}
            for column in section.columns
        ],
        "rows": [{key: _cell(cell) for key, cell in row.items()} for row in section.rows],
    }


def _cell(cell: Cell) -> str | Record:
    if isinstance(cell, str):
        return cell
    return {
        "value": cell.value,
        "lower_bound": cell.lower_bound,
        "few": cell.few,
        "undefined_because": cell.undefined_because or None,
    }
