"""Cluster: who holds which GPUs, what is free, and of what use that is to those who wait."""

from collections.abc import Mapping

import streamlit as st

from dashboard.shared import (
    capacity_charts,
    charts,
    data,
    filters,
    frame,
    gpu_faults,
    metric_table,
    node_grid,
    report_tables,
    tables,
)
from dashboard.shared import format as text
from dashboard.shared.data import Answer, MetricInfo
from dashboard.shared.metric_table import Shown
from dashboard.shared.tables import Cell, Column
from domain.errors import UsageError

LEAD = "Nodes with GPUs: who holds them, what is free, and what of that nobody who waits can use."
POOL = ("cluster", "gpu_model")
NODE = (*POOL, "node")
# Columns of the table of models, each a metric.
COLUMNS = {
    "capacity_gpus": "Capacity",
    "held_gpus": "Held",
    "free_gpus": "Free",
    "fragmented_gpus": "Fragmented",
    "reclaimable_gpus": "Reclaimable",
    "cordoned_gpus": "Cordoned",
    "unhealthy_gpus": "Unhealthy",
    "unpartitioned_gpus": "Unpartitioned",
    "overcommitted_gpus": "Overcommitted",
}
# What cannot hide behind its neighbour: more than none of it is worth a look.
WARNED = ("fragmented_gpus", "unhealthy_gpus", "overcommitted_gpus")
ACTIVITY = "gpu_activity_ratio"
NODES_SHOWN = 100
NODE_PAGE = "page-nodes"
CHANGES = (
    *(
        Shown(metric="node_changes_nodes", title=f"{change.capitalize()} a day", where={"change": change})
        for change in ("joined", "left", "lost")
    ),
    Shown(metric="node_loss_gpu_hours", title="Work lost to nodes"),
)
READINGS = (
    *(
        Shown(metric="gpu_readings_quantile_ratio", title=title, where={"quantile": quantile})
        for quantile, title in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"))
    ),
    Shown(metric="gpu_readings_inactive_ratio", title="Of no activity"),
)
BUSY = (
    Shown(metric=ACTIVITY, title="Mean activity"),
    Shown(metric="gpu_sample_coverage_ratio", title="Seen, of what was held"),
    Shown(metric="goodput_ratio", title="Goodput"),
)


def main() -> None:
    """Draw the page."""
    frame.page("Cluster", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    asked = _filters()
    answers = {name: data.metric(name, by=POOL, asked=asked) for name in COLUMNS}
    if not answers["capacity_gpus"].by(*POOL):
        st.info(
            "No node with GPUs is known here. Connect a cluster, or import a recording with "
            "`gpuledger import k8s FOLDER`."
        )
        frame.freshness(answers.values())
        return
    _verdict(answers)
    _models(registry, answers)
    _ladder(registry, asked)
    _nodes(asked)
    faults = data.gpu_faults(as_of=filters.from_url("as_of"))
    only = asked.get("cluster")
    gpu_faults.show([fault for fault in faults if only in {None, fault["cluster"]}])
    _busy(registry, asked)
    report_tables.show(registry, "fragmentation", "fragmentation", asked)
    report_tables.show(registry, "nodes", "nodes and GPUs", asked)


def _busy(registry: dict[str, MetricInfo], asked: dict[str, str]) -> None:
    metric_table.show(
        registry, "Nodes that came and went", CHANGES, by=POOL, asked=asked, nothing="None in the window."
    )
    metric_table.show(
        registry,
        "How busy GPUs were",
        BUSY,
        by=POOL,
        asked=asked,
    )
    metric_table.show(
        registry,
        "Single readings of GPUs",
        READINGS,
        by=POOL,
        asked=asked,
        note="Each reading counts alike: a mean hides long idleness.",
    )


def _filters() -> dict[str, str]:
    known = data.metric("capacity_gpus", by=POOL, asked=filters.asked()).by(*POOL)
    columns = st.columns([2, 4, 2, 4])
    with columns[0]:
        cluster = filters.choice("Cluster", "cluster", [row.labels["cluster"] for row in known])
    with columns[1]:
        model = filters.choice("GPU model", "gpu_model", [row.labels["gpu_model"] for row in known])
    with columns[2]:
        frame.auto_refresh()
    return filters.asked(cluster=cluster, gpu_model=model)


def _verdict(answers: Mapping[str, Answer]) -> None:
    free, stuck = answers["free_gpus"].total(), answers["fragmented_gpus"].total()
    shown = {name: answer.total_shown() for name, answer in answers.items()}
    there = f"{shown['free_gpus']} of {shown['capacity_gpus']} GPUs are free"
    if not free:
        st.info(f"{there}.")
    elif not stuck:
        st.success(f"{there}; none of them is out of reach of those who wait.")
    else:
        st.warning(
            f"{there}, but {shown['fragmented_gpus']} of them are of no use to anybody who waits; "
            f"a repack of work that may be moved would give back {shown['reclaimable_gpus']}."
        )


def _models(registry: dict[str, MetricInfo], answers: Mapping[str, Answer]) -> None:
    several = len({row.labels["cluster"] for answer in answers.values() for row in answer.by(*POOL)}) > 1
    columns = [
        *([Column(key="cluster", title="Cluster")] if several else []),
        Column(key="gpu_model", title="GPU model"),
        *(
            Column(key=name, title=title, number=True, help=_definition(registry, name))
            for name, title in COLUMNS.items()
        ),
    ]
    # Where nodes do not tell their model, what is held of them may still be known by one.
    lines = sorted(
        {tuple(row.labels[name] for name in POOL) for answer in answers.values() for row in answer.by(*POOL)},
        key=lambda line: text.natural(*line),
    )
    rows: list[dict[str, Cell | str]] = []
    for line in lines:
        labels = dict(zip(POOL, line, strict=True))
        cells: dict[str, Cell | str] = {**labels, "gpu_model": labels["gpu_model"] or "(not known)"}
        for name, answer in answers.items():
            row = answer.where(**labels)
            bad = bool(row and row.value and name in WARNED)
            cells[name] = Cell(shown=row.shown(answer.unit), bad=bad) if row else text.UNDEFINED
        rows.append(cells)
    st.subheader("GPUs per model, now", anchor=False)
    tables.show(columns, rows, caption="GPUs per model")
    frame.freshness(answers.values())


def _definition(registry: dict[str, MetricInfo], name: str) -> str:
    return registry[name].definition if name in registry else ""


def _ladder(registry: dict[str, MetricInfo], asked: dict[str, str]) -> None:
    ladder = data.metric("fragmentation_ratio", by=("gpu_model",), asked=asked)
    waste = data.metric("fragment_waste_ratio", by=("gpu_model",), asked=asked)
    steps = [row for row in ladder.by("gpu_model", "size") if row.value is not None]
    st.subheader(
        "What pods of each size would leave over of what is free, now",
        anchor=False,
        help=frame.help_of(registry, ladder.metric),
    )
    if steps:
        values = {
            (row.labels["gpu_model"], row.labels["size"]): charts.Labelled(
                length=row.value or 0.0, shown=row.shown(ladder.unit)
            )
            for row in steps
        }
        st.plotly_chart(
            capacity_charts.ladder(values),
            config=charts.CONFIG,
            alt="Share of the free GPUs that pods of each size asked in the last 7 days would leave over",
        )
    else:
        st.info("No workload asked for GPUs in the last 7 days, so there is no size to judge by.")
    told = [
        f"{row.labels['gpu_model'] or '(not known)'} {row.shown(waste.unit)}" for row in waste.by("gpu_model")
    ]
    if told:
        st.caption(
            f"Fragment waste, of all GPUs: {', '.join(told)}", help=frame.help_of(registry, waste.metric)
        )
    frame.freshness([ladder, waste])


def _nodes(asked: dict[str, str]) -> None:
    names = (
        "capacity_gpus",
        "free_gpus",
        "fragmented_gpus",
        "cordoned_gpus",
        "unhealthy_gpus",
        "unpartitioned_gpus",
    )
    answers = {name: data.metric(name, by=NODE, asked=asked) for name in names}
    held = data.metric("held_gpus", by=(*NODE, "team"), asked=asked)
    activity = _activity(asked)
    known = sorted(
        answers["capacity_gpus"].by(*NODE),
        key=lambda row: text.natural(*(row.labels[name] for name in ("gpu_model", "cluster", "node"))),
    )
    of_team: dict[tuple[str, str], dict[str, float]] = {}
    whole: dict[str, float] = {}
    for row in held.by(*NODE, "team"):
        if row.value:
            teams = of_team.setdefault((row.labels["cluster"], row.labels["node"]), {})
            team = row.labels["team"] or "(no team)"
            teams[team] = row.value
            whole[team] = whole.get(team, 0.0) + row.value
    st.subheader("Nodes, now", anchor=False)
    nodes = []
    for row in filters.paged(known, NODES_SHOWN, NODE_PAGE):
        place = {name: row.labels[name] for name in ("cluster", "node")}
        found = {name: answer.where(**place) for name, answer in answers.items()}
        amounts = {name: (value.value or 0.0) if value else 0.0 for name, value in found.items()}
        unknown = [name for name, value in found.items() if value and value.lower_bound]
        nodes.append(
            node_grid.Node(
                name=row.labels["node"],
                model=row.labels["gpu_model"],
                capacity=row.value or 0.0,
                held=of_team.get((row.labels["cluster"], row.labels["node"]), {}),
                unheld={
                    "free": max(amounts["free_gpus"] - amounts["fragmented_gpus"], 0.0),
                    "fragmented": amounts["fragmented_gpus"],
                    "cordoned": amounts["cordoned_gpus"],
                    "unhealthy": amounts["unhealthy_gpus"],
                    "unpartitioned": amounts["unpartitioned_gpus"],
                },
                notes=(
                    *([f"busy, 24 h: {activity[place['node']]}"] if place["node"] in activity else []),
                    *(["what is free is not known"] if unknown else []),
                ),
            )
        )
    node_grid.show(nodes, whole)
    filters.pages_of(known, NODES_SHOWN, NODE_PAGE, "node")
    frame.freshness([*answers.values(), held])


def _activity(asked: dict[str, str]) -> dict[str, str]:
    """How busy each node's GPUs are, in words, where GPU metrics are read."""
    try:
        answer = data.metric(ACTIVITY, by=("node",), asked=asked)
    except (UsageError, data.NotFoundError):
        return {}
    rows = (row for row in answer.by("node") if row.value is not None)
    return {row.labels["node"]: row.shown(answer.unit) for row in rows}


if __name__ == "__main__":
    main()
