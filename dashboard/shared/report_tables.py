"""The tables of a report on the page of its subject, so that its links lead to each of its figures."""

from collections.abc import Mapping
from typing import Final

import streamlit as st

from dashboard.shared import data, filters, frame, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json, MetricInfo
from dashboard.shared.tables import Cell, Column

_UNITS: Final = {"gpu_hours": "GPU-h", "gpus": "GPU"}


def show(registry: dict[str, MetricInfo], report: str, title: str, asked: Mapping[str, str]) -> None:
    """
    Every table of a report, closed until somebody opens it or an address names one of its tables.

    What is closed is not asked for, so that it costs the page nothing.

    Args:
        registry: for the definitions.
        report: its name in the API.
        title: what it tells of, for people.
        asked: filters, and the window and instant of the page.
    """
    wanted = filters.from_url("table").startswith(f"{report}.")
    box = st.expander(
        f"Every table of the report: {title}", expanded=wanted, key=f"tables-{report}", on_change="rerun"
    )
    if not box.open:
        return
    with box:
        document = data.get(f"reports/{report}", asked)
        for section in document["sections"]:
            _section(registry, document, section)
        coverage = [] if document["coverage"] is None else [document["coverage"]]
        windowed = bool(document["window"])
        st.caption(
            frame.freshness_text(
                text.parse_instant(document["as_of"]),
                [filters.window_name(document["window"])] if windowed else [],
                coverage if windowed else [],
                [] if windowed else coverage,
            )
        )


def _section(registry: dict[str, MetricInfo], document: Json, section: Json) -> None:
    window = filters.window_name(section["window"] or document["window"] or "")
    # What is of the instant, or of all time, says so in its title.
    title = str(section["title"])
    heading = title if title.endswith(("now", "ever")) else f"{title}, {window}"
    st.subheader(heading, anchor=f"{document['report']}-{section['key']}")
    if section["note"]:
        st.caption(section["note"])
    if not section["rows"]:
        st.caption(f"Nothing to show, {window}.")
        return
    columns = [
        Column(
            key=column["key"],
            title=_title(column),
            help=frame.help_of(registry, column["metric"]) if column["metric"] else "",
            number=bool(column["unit"]),
        )
        for column in section["columns"]
    ]
    rows = [
        {column["key"]: _cell(row.get(column["key"]), column["unit"]) for column in section["columns"]}
        for row in section["rows"]
    ]
    tables.show(columns, rows, caption=f"report {document['report']}: {section['title']}")


def _title(column: Json) -> str:
    unit = _UNITS.get(column["unit"], "")
    return f"{column['title']} ({unit})" if unit and unit not in column["title"] else column["title"]


def _cell(cell: Json, unit: str) -> Cell | str:
    if cell is None:
        return text.UNDEFINED
    if isinstance(cell, str):
        return cell
    return Cell(
        shown=text.bounded(cell["value"], unit, lower_bound=cell["lower_bound"], few=cell["few"]),
        note=cell["undefined_because"] or "",
    )
