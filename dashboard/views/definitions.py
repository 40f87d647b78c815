"""Definitions: what every number means, from the metrics' own declarations."""

import streamlit as st

from dashboard.shared import charts, data, frame, tables
from dashboard.shared import format as text
from dashboard.shared.data import MetricInfo
from dashboard.shared.tables import Cell, Column

LEAD = "Every number is defined once; the pages, the API, the alerts and the exports all use that one."
COLUMNS = (
    Column(key="title", title="Metric"),
    Column(key="name", title="Name"),
    Column(key="unit", title="Unit"),
)


def main() -> None:
    """Draw the page."""
    frame.page("Definitions", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    if not registry:
        st.info("The API declares no metric.")
        return
    rows: list[dict[str, Cell | str]] = [
        {
            "title": Cell(shown=info.title, href=f"#{info.name}"),
            "name": info.name,
            "unit": text.UNIT_NAMES.get(info.unit, info.unit),
        }
        for info in registry.values()
    ]
    tables.show(COLUMNS, rows, caption="metrics")
    for info in registry.values():
        _metric(info)
    _states()


def _metric(info: MetricInfo) -> None:
    st.subheader(info.title, anchor=info.name)
    st.markdown(info.definition)
    unit = text.UNIT_NAMES.get(info.unit, info.unit)
    labels = ", ".join(f"`{label}`" for label in info.labels) or "none"
    st.caption(f"`{info.name}` · unit: {unit} · kept apart by: {labels} · source: {info.source}")


def _states() -> None:
    st.subheader("States of a workload", anchor="states")
    columns = [Column(key="state", title="State"), Column(key="meaning", title="Meaning")]
    rows: list[dict[str, Cell | str]] = [
        {"state": Cell(shown=state, state=state), "meaning": meaning}
        for state, meaning in charts.STATE_MEANINGS.items()
    ]
    tables.show(columns, rows, caption="states")


if __name__ == "__main__":
    main()
