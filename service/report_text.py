"""A report's document as text for people: a terminal's table, markdown, CSV; figures keep their limits."""

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from api.answers import Filters, Record
from api.exports.comma_separated import inert
from domain.window import parse_duration
from service import words

_UNITS: Final = {
    **dict.fromkeys(
        ("seconds", "ratio", "total", "per_second", "times", "jobs", "users", "readings", "money"), ""
    ),
    "gpu_hours": "GPU-h",
    "gpus": "GPU",
    "per_1000_gpu_hours": "per 1,000 GPU-hours",
    "permille": "per mille",
}
# What the pages call a filter in their address, where they have a short word for it.
_SHORT: Final = {"service_class": "class"}
NO_ROWS: Final = "Nothing to show in this window."


def plain(document: Record) -> str:
    """As a terminal shows it: sentences, then tables under their headings."""
    parts = ["\n".join([_heading(document), *document["lead"]])]
    for section in document["sections"]:
        lines = [_section_title(document, section).upper()]
        lines += [section["note"]] if section["note"] else []
        reasons: list[str] = []
        lines.append(_aligned(section, reasons))
        lines += _footnotes(reasons)
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def addressed(document: Record, *, dashboard_url: str, filters: Filters | None = None) -> Record:
    """The same, each section with the address of its figures on the dashboard, empty where it has none."""
    sections = [
        section | {"address": _address(dashboard_url, document, section, filters or {})}
        for section in document["sections"]
    ]
    return document | {"sections": sections}


def markdown(document: Record) -> str:
    """As markdown; a table that has an address links to the page with the same figures."""
    parts = [f"# {_heading(document)}", *document["lead"]]
    for section in document["sections"]:
        parts.append(f"## {_section_title(document, section)}")
        if section["note"]:
            parts.append(section["note"])
        reasons: list[str] = []
        titles, lines = _texts(section, reasons, absent="–")
        if lines:
            rows = [titles, ["---" if not c["unit"] else "---:" for c in section["columns"]], *lines]
            parts.append("\n".join(f"| {' | '.join(map(_escaped, row))} |" for row in rows))
        else:
            parts.append(NO_ROWS)
        parts += _footnotes(reasons)
        if section.get("address"):
            parts.append(f"[These figures on their page]({section['address']})")
    return "\n\n".join(parts) + "\n"


def to_csv(document: Record) -> str:
    """
    One row per figure, so that sections of different columns are one table.

    Columns: report, as_of, window, coverage, section, row (its labels), column, metric, unit, value,
    lower_bound, few, undefined_because, address.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ("report", "as_of", "window", "coverage", "section", "row", "column", "metric", "unit", "value")
    writer.writerow((*head, "lower_bound", "few", "undefined_because", "address"))
    for section in document["sections"]:
        for row in section["rows"]:
            label = " / ".join(cell for cell in row.values() if isinstance(cell, str))
            for column in section["columns"]:
                cell = row.get(column["key"])
                if not isinstance(cell, dict):
                    continue
                writer.writerow(
                    [
                        *(document[name] for name in ("report", "as_of", "window", "coverage")),
                        section["key"],
                        inert(label),
                        *(column[name] for name in ("key", "metric", "unit")),
                        *(cell[name] for name in ("value", "lower_bound", "few", "undefined_because")),
                        section.get("address", ""),
                    ]
                )
    return out.getvalue()


def _heading(document: Record) -> str:
    window = f", last {document['window']}" if document["window"] else ""
    return f"{document['title']} as of {document['as_of'][:16].replace('T', ' ')} UTC{window}"


def _section_title(document: Record, section: Record) -> str:
    own = section["window"] if section["window"] != document["window"] else None
    return f"{section['title']}, last {own}" if own else str(section["title"])


def _footnotes(reasons: list[str]) -> list[str]:
    return [f"({number}) {reason}" for number, reason in enumerate(reasons, start=1)]


def _aligned(section: Record, reasons: list[str]) -> str:
    titles, lines = _texts(section, reasons, absent="-")
    if not lines:
        return NO_ROWS
    rows = [[title.upper() for title in titles], *lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(titles))]
    pads: list[Callable[[str, int], str]] = [
        str.rjust if column["unit"] else str.ljust for column in section["columns"]
    ]
    return "\n".join(
        "   ".join(pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True)).rstrip()
        for row in rows
    )


def _texts(section: Record, reasons: list[str], *, absent: str) -> tuple[list[str], list[list[str]]]:
    """Titles and cells; reasons of what is unknown are numbered, in the order of their first cell."""
    columns = section["columns"]
    titles = [_title(column) for column in columns]
    return titles, [
        [_cell(row.get(column["key"]), column["unit"], reasons, absent=absent) for column in columns]
        for row in section["rows"]
    ]


def _title(column: Record) -> str:
    unit = _UNITS.get(column["unit"], column["unit"])
    named = unit and unit.lower() not in column["title"].lower()
    return f"{column['title']} ({unit})" if named else column["title"]


def _cell(cell: Any, unit: str, reasons: list[str], *, absent: str) -> str:
    if cell is None:
        return absent
    if isinstance(cell, str):
        return cell
    if cell["value"] is None:
        reason = cell["undefined_because"]
        if reason not in reasons:
            reasons.append(reason)
        return f"unknown ({reasons.index(reason) + 1})"
    value = f"{cell['value']:.1%}" if unit == "ratio" else _number(cell["value"], unit)
    return f"{'>= ' if cell['lower_bound'] else ''}{value}{' *' if cell['few'] else ''}"


def _number(value: float, unit: str) -> str:
    # A zero has no sign.
    return f"{round(value, 1) + 0:,.1f}" if unit == "gpu_hours" else words.amount(value, unit)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _address(dashboard_url: str, document: Record, section: Record, filters: Filters) -> str:
    if not dashboard_url or not section["page"]:
        return ""
    params = {_SHORT.get(name, name): ",".join(values) for name, values in filters.items()}
    params["as_of"] = document["as_of"]
    window = section["window"] or document["window"]
    if window:
        # The pages count windows of weeks in days.
        length = parse_duration(window)
        params["window"] = f"{length.days}d" if length == timedelta(length.days) else window
    # The page opens the table of that name, and the browser goes to it.
    params["table"] = f"{document['report']}.{section['key']}"
    page = f"{dashboard_url.rstrip('/')}/{section['page']}"
    return f"{page}?{urlencode(params)}#{document['report']}-{section['key']}"
