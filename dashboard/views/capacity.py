"""Capacity: buy more GPUs, or use better those that there are."""

from collections.abc import Mapping

import streamlit as st

from dashboard.shared import capacity_charts, charts, data, filters, frame, report_tables, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json, MetricInfo
from dashboard.shared.tables import Cell, Column

LEAD = "Whether the GPUs are held, productive and still waited for, day by day, and what stands in their way."
POOL = ("cluster", "gpu_model")
USE = {
    "capacity_gpus": "Capacity",
    "capacity_held_ratio": "Held",
    "capacity_productive_ratio": "Productive",
    "buying_days": "Days for buying",
    "reclaimable_gpus": "Reclaimable now",
}
IN_THE_WAY = {
    "fragmented_gpus": "Fragmented",
    "fragment_waste_ratio": "Fragment waste",
    "cordoned_gpus": "Cordoned",
    "unhealthy_gpus": "Unhealthy",
    "unpartitioned_gpus": "Unpartitioned",
    "overcommitted_gpus": "Overcommitted",
}
WINDOW = "7d"
# The report's figures and their conditions, side by side.
CONDITIONS = ("held", "productive", "wait")
REPORT = "reports/capacity"


def main() -> None:
    """Draw the page."""
    frame.page("Capacity", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    asked = _filters()
    report = data.get(REPORT, asked)
    days = next(section for section in report["sections"] if section["key"] == "days")
    if all(row["held"]["value"] is None for row in days["rows"]):
        st.info(
            "No node with GPUs is known in the last days, so there is nothing to judge. Connect a cluster, or"
            " import a recording with `gpuledger import k8s FOLDER`."
        )
        _age(report)
        return
    verdict, *more = report["lead"]
    (st.warning if verdict.startswith("Buy") else st.info)(f"**{verdict}** {' '.join(more)}")
    _by_day(report, days)
    _pools(registry, asked)
    report_tables.show(registry, "capacity", "buy or tune", asked)


def _filters() -> dict[str, str]:
    known = data.metric("capacity_gpus", by=POOL, asked=filters.asked()).by(*POOL)
    columns = st.columns([2, 4, 6])
    with columns[0]:
        cluster = filters.choice("Cluster", "cluster", [row.labels["cluster"] for row in known])
    with columns[1]:
        model = filters.choice("GPU model", "gpu_model", [row.labels["gpu_model"] for row in known])
    return filters.asked(cluster=cluster, gpu_model=model)


def _by_day(report: Json, days: Json) -> None:
    st.subheader("Conditions of buying, day by day", anchor=False)
    values = {
        (text.instant(text.parse_instant(row["until"]))[:10], key): charts.Labelled(
            length=row[key]["value"],
            shown=text.bounded(row[key]["value"], "ratio", lower_bound=row[key]["lower_bound"]),
        )
        for row in days["rows"]
        for key in ("held", "productive")
        if row[key]["value"] is not None
    }
    st.plotly_chart(
        capacity_charts.parts_by_day(values),
        config=charts.CONFIG,
        alt="The parts of the capacity that were held and productive, for each 24 hours until that day",
    )
    columns = [Column(key="until", title="24 h until")]
    titles = {column["key"]: column for column in days["columns"]}
    for key in CONDITIONS:
        columns += [
            Column(key=key, title=titles[key]["title"], number=True),
            Column(key=f"{key}_condition", title="Condition"),
        ]
    columns.append(Column(key="all", title=titles["all"]["title"]))
    tables.show(columns, [_line(row, titles) for row in days["rows"]], caption="conditions of buying")
    st.caption(days["note"])
    _age(report)


def _line(row: Json, titles: Mapping[str, Json]) -> dict[str, Cell | str]:
    cells: dict[str, Cell | str] = {
        "until": text.instant(text.parse_instant(row["until"])),
        "all": row["all"],
    }
    for key in CONDITIONS:
        figure = row[key]
        shown = text.bounded(
            figure["value"], titles[key]["unit"], lower_bound=figure["lower_bound"], few=figure["few"]
        )
        cells[key] = Cell(shown=shown, note=figure["undefined_because"] or "")
        cells[f"{key}_condition"] = row[f"{key}_condition"]
    return cells


def _pools(registry: dict[str, MetricInfo], asked: dict[str, str]) -> None:
    _table(registry, asked, "By GPU model", USE)
    _table(registry, asked, "What stands in the way now, by GPU model", IN_THE_WAY)
    st.page_link("views/cluster.py", label="Nodes, and what of them is free")


def _table(
    registry: dict[str, MetricInfo], asked: dict[str, str], title: str, titles: Mapping[str, str]
) -> None:
    st.subheader(title, anchor=False)
    answers = {name: data.metric(name, by=POOL, asked={**asked, "window": WINDOW}) for name in titles}
    lines = sorted(
        {tuple(row.labels[name] for name in POOL) for answer in answers.values() for row in answer.by(*POOL)}
    )
    columns = [
        Column(key="cluster", title="Cluster"),
        Column(key="gpu_model", title="GPU model"),
        *(
            Column(
                key=name,
                title=head,
                number=True,
                help=registry[name].definition if name in registry else "",
            )
            for name, head in titles.items()
        ),
    ]
    rows: list[dict[str, Cell | str]] = []
    for line in lines:
        labels = dict(zip(POOL, line, strict=True))
        cells: dict[str, Cell | str] = {**labels, "gpu_model": labels["gpu_model"] or "(not known)"}
        for name, answer in answers.items():
            row = answer.where(**labels)
            cells[name] = (
                Cell(shown=row.shown(answer.unit), note=row.undefined_because) if row else text.UNDEFINED
            )
        rows.append(cells)
    tables.show(columns, rows, caption=title)
    frame.freshness(answers.values())


def _age(report: Json) -> None:
    st.caption(
        frame.freshness_text(
            text.parse_instant(report["as_of"]),
            [filters.window_name(report["window"] or "")],
            [] if report["coverage"] is None else [report["coverage"]],
        )
    )


if __name__ == "__main__":
    main()
