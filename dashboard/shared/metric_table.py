"""Metrics side by side as a table of a page, one row per combination of labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import streamlit as st

from dashboard.shared import data, filters, frame, tables
from dashboard.shared import format as text
from dashboard.shared.data import Answer, MetricInfo
from dashboard.shared.tables import Cell, Column

_TITLES: Final = {
    "cluster": "Cluster", "pool": "Pool", "queue": "Queue", "team": "Team", "service_class": "Class",
    "gpu_model": "GPU model", "capacity_type": "Kind", "fits": "Would do", "period": "Period",
    "cause": "Cause", "reason": "Reason", "victim_class": "Of class", "preemptor_class": "For class",
    "mechanism": "By",
}  # fmt: skip
_NO_NAME: Final = {"queue": text.NO_QUEUE, "team": "(no team)"}
_UNITS: Final = {"gpu_hours": "GPU-h", "per_1000_gpu_hours": "per 1,000 GPU-h"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    A metric in a column; `where` picks one of the labels that it adds, for example a quantile.

    `unit` where it is not read in the metric's own: `times` for a ratio that lies above 1.
    """

    metric: str
    title: str
    where: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""


def show(  # noqa: PLR0913 - a table has that many parts, all named
    registry: Mapping[str, MetricInfo],
    title: str,
    shown: Sequence[Shown],
    *,
    by: tuple[str, ...],
    asked: Mapping[str, str],
    apart: tuple[str, ...] = (),
    note: str = "",
    nothing: str = "",
) -> None:
    """
    The table under its heading; where no figure is known and above zero the sentence `nothing` instead.

    Args:
        registry: metrics of the API; one that it does not have has no column.
        title: of the table; the window of its figures is added.
        shown: the columns.
        by: labels that make the rows.
        asked: filters, window and instant of the page.
        apart: labels that the metrics add, which make rows too.
        note: what the reader should know.
        nothing: empty where there should be no heading either.
    """
    shown = [one for one in shown if one.metric in registry]
    answers = {one.metric: data.metric(one.metric, by=by, asked=asked) for one in shown}
    if not answers:
        return
    rows = _rows(shown, answers, (*by, *apart))
    windows = {filters.window_name(answer.window) for answer in answers.values() if answer.window}
    told = any(row.value for answer in answers.values() for row in answer.rows)
    if not rows or not told:
        if nothing:
            st.subheader(title, anchor=False)
            st.caption(nothing)
        return
    # Figures of one window have it in the heading; of several, each has it in its own head.
    of_all = f", {''.join(windows) or 'now'}" if len(windows) < 2 else ""
    st.subheader(f"{title}{of_all}", anchor=False)
    if note:
        st.caption(note)
    # What is known nowhere has no column.
    known = {key for cells in rows.values() for key, cell in cells.items() if _tells(cell)}
    heads = [Column(key=name, title=_TITLES.get(name, name)) for name in (*by, *apart)]
    columns = [
        Column(
            key=_key(one),
            title=_titled(one.title, answers[one.metric], windows),
            help=_definition(registry, one.metric),
            number=True,
        )
        for one in shown
        if _key(one) in known
    ]
    tables.show([*heads, *columns], [rows[line] for line in sorted(rows, key=_order)], caption=title)
    frame.freshness(answers.values())


def _rows(
    shown: Sequence[Shown], answers: Mapping[str, Answer], heads: tuple[str, ...]
) -> dict[tuple[str, ...], dict[str, Cell | str]]:
    rows: dict[tuple[str, ...], dict[str, Cell | str]] = {}
    for one in shown:
        answer = answers[one.metric]
        for row in answer.by(*heads):
            if not one.where.items() <= row.labels.items():
                continue
            line = tuple(row.labels[name] for name in heads)
            cells = rows.setdefault(line, {name: _named(name, row.labels[name]) for name in heads})
            cells[_key(one)] = Cell(shown=row.shown(one.unit or answer.unit), note=row.undefined_because)
    blank: dict[str, Cell | str] = {_key(one): text.UNDEFINED for one in shown}
    return {line: blank | cells for line, cells in rows.items()}


def _order(line: tuple[str, ...]) -> tuple[object, ...]:
    return text.natural(*line)


def _tells(cell: Cell | str) -> bool:
    return isinstance(cell, Cell) and cell.shown != text.UNDEFINED


def _named(label: str, value: str) -> str:
    if label.endswith("_class"):
        return text.class_name(value)
    return value or _NO_NAME.get(label, "(none)")


def _key(one: Shown) -> str:
    return "_".join((one.metric, *one.where.values()))


def _titled(title: str, answer: Answer, windows: set[str]) -> str:
    """With its unit, and with the time that it is of unless all are of that."""
    of = filters.window_name(answer.window) if answer.window else "now"
    is_said = windows in ({of}, set())
    return ", ".join(part for part in (title, _UNITS.get(answer.unit, ""), "" if is_said else of) if part)


def _definition(registry: Mapping[str, MetricInfo], name: str) -> str:
    return registry[name].definition
