"""Help: where to look, how to read a figure, and what every number means."""

import streamlit as st

from dashboard.shared import charts, data, frame, tables
from dashboard.shared import format as text
from dashboard.shared.data import MetricInfo
from dashboard.shared.tables import Cell, Column

LEAD = "Every number is defined once; the pages, the API, the alerts and the exports all use that one."
WHERE = (
    ("How long has my job waited, in which state is it, what happened to it?", "jobs", "Jobs"),
    ("Who waits past the target of their class?", "queues", "Queues"),
    ("Which GPUs are held, free, broken up or broken?", "cluster", "Cluster"),
    ("Who is owed capacity, who borrowed it from whom?", "fairness", "Fairness"),
    ("Which team wastes GPU-hours, and how?", "waste", "Waste"),
    ("Which rules of the house are broken?", "policy", "Policy"),
    ("Which quota should change, and what would that expose?", "quota", "Quota"),
    ("What does each team owe for the month?", "chargeback", "Chargeback"),
    ("Buy GPUs, or use better what is there?", "capacity", "Capacity"),
    ("Is the data complete and fresh?", "sources", "Sources"),
)
MARKS = (
    ("≥ 3 h", "A lower bound: the true value is at least this, for example because a job still waits."),
    ("3 h (few)", "It rests on fewer than five workloads."),
    ("▲ 3 h", "Past its target."),
    ("–", "There is no value. Rest on it: the reason is there. Zero never stands for unknown."),
    (
        "last 24 h · as of 10:00",
        "How far back a figure looks, and the instant that it is about; what happens later never changes it.",
    ),
    (
        "80 % of the window was observed",
        "In the rest of it nobody read the cluster, or its GPU metrics. The figure is about what was seen.",
    ),
    ("rests on 80 % of the sources", "The others were not read in time: what happened since is missing."),
)
COLUMNS = (
    Column(key="title", title="Metric"),
    Column(key="name", title="Name"),
    Column(key="unit", title="Unit"),
    Column(key="pages", title="Shown on"),
)


def main() -> None:
    """Draw the page."""
    frame.page("Help and definitions", LEAD, _draw)


def _draw() -> None:
    st.subheader("Where to look", anchor="where")
    tables.show(
        (Column(key="question", title="Question"), Column(key="page", title="Page")),
        [{"question": question, "page": Cell(shown=title, href=page)} for question, page, title in WHERE],
        caption="questions and their pages",
    )
    st.subheader("How to read a figure", anchor="marks")
    tables.show(
        (Column(key="mark", title="Shown"), Column(key="meaning", title="Means")),
        [{"mark": mark, "meaning": meaning} for mark, meaning in MARKS],
        caption="marks",
    )
    _states()
    registry = data.registry()
    if not registry:
        st.info("The API declares no metric.")
        return
    st.subheader("What every number means", anchor="metrics")
    rows: list[dict[str, Cell | str]] = [
        {
            "title": Cell(shown=info.title, href=f"#{info.name}"),
            "name": info.name,
            "unit": text.UNIT_NAMES.get(info.unit, info.unit),
            "pages": ", ".join(info.pages),
        }
        for info in registry.values()
    ]
    tables.show(COLUMNS, rows, caption="metrics")
    for info in registry.values():
        _metric(info)


def _metric(info: MetricInfo) -> None:
    st.subheader(info.title, anchor=info.name)
    st.markdown(info.definition)
    unit = text.UNIT_NAMES.get(info.unit, info.unit)
    labels = ", ".join(f"`{label}`" for label in info.labels) or "none"
    over = f" · {info.looks_back}" if info.looks_back else ""
    st.caption(f"`{info.name}` · unit: {unit}{over} · kept apart by: {labels} · source: {info.source}")


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
