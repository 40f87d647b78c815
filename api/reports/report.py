"""What a report file declares, and a report as the API gives it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from api.answers import Answers, Record, ReportQuestion, format_length
from domain.report import Cell, Report, Section
from domain.window import format_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """
    A report's declaration: `build` makes it for a reader, from what the reader may see.

    `window` is the window of a question without one; None where the report has no window.
    """

    name: str
    title: str
    question: str
    window: timedelta | None
    build: Callable[[Answers, ReportQuestion], Report]


def document(report: Report) -> Record:
    """A report as the API gives it in JSON."""
    return {
        "report": report.name,
        "title": report.title,
        "as_of": format_instant(report.as_of_ms),
        "window": format_length(report.window) if report.window else None,
        "lead": list(report.lead),
        "sections": [_section(section) for section in report.sections],
    }


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
