"""Queues: depth, waits and targets per queue and class."""

from collections.abc import Mapping

import streamlit as st

from dashboard.shared import (
    charts,
    data,
    filters,
    frame,
    longest,
    metric_table,
    report_tables,
    tables,
    wait_reasons,
)
from dashboard.shared import format as text
from dashboard.shared.charts import WaitDot
from dashboard.shared.data import Answer, MetricInfo, Value
from dashboard.shared.metric_table import Shown
from dashboard.shared.tables import Cell, Column

LEAD = "How deep each queue is, how long it makes people wait, and what was promised."
BY = ("cluster", "queue", "service_class")
QUANTILES = ("0.5", "0.9", "0.99")
NAMES = {
    "depth": "queue_depth_workloads",
    "gpus": "queue_depth_gpus",
    "wait": "queue_wait_seconds",
    "starving": "starvation_index_seconds",
    "past": "past_target_workloads",
}
WORST, NAMES_FIRST = "", "name"
ORDERS = {WORST: "worst first", NAMES_FIRST: "by name"}
_P99 = {"quantile": "0.99", "estimator": "censored"}
WAYS = (
    *(
        Shown(metric="queue_wait_component_seconds", title=title, where={"component": component})
        for component, title in (("quota", "For quota"), ("checks", "In checks"), ("placing", "For a place"))
    ),
    Shown(metric="admission_check_seconds", title="p99 check", where=_P99),
    Shown(metric="time_to_placement_seconds", title="p99 to placement", where=_P99),
    Shown(metric="time_to_running_seconds", title="p99 to running", where=_P99),
    Shown(metric="requeue_wait_seconds", title="p99 re-queue", where=_P99),
    Shown(metric="member_wait_seconds", title="p99 of a member", where=_P99),
    Shown(metric="bounded_slowdown_ratio", title="p99 slowdown", where={"quantile": "0.99"}, unit="times"),
    Shown(metric="cancelled_while_waiting_ratio", title="Cancelled"),
)
LIMITS = (
    *(
        Shown(
            metric="queue_wait_interval_seconds",
            title=f"{name} {end}",
            where={"quantile": quantile, "bound": bound},
        )
        for quantile, name in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"))
        for bound, end in (("lower", "from"), ("upper", "to"))
    ),
    Shown(metric="longest_queue_wait_seconds", title="Longest"),
    Shown(metric="first_placed_workloads", title="Placed"),
)
FLOWS = (
    *(
        Shown(metric="queue_flow_per_second", title=flow.capitalize(), where={"flow": flow})
        for flow in ("arrivals", "departures", "admissions")
    ),
    Shown(metric="preemptions_per_attempt_ratio", title="Preempted, of attempts"),
    Shown(metric="preemptions_per_1000_gpu_hours", title="Preempted"),
    Shown(metric="restarts_per_attempt_ratio", title="Restarted, of attempts"),
    Shown(metric="restarts_per_1000_gpu_hours", title="Restarted"),
)
STALLED = "scheduler_stalled_workloads"


def main() -> None:
    """Draw the page."""
    frame.page("Queues", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    asked = _filters()
    answers = {key: data.metric(name, by=BY, asked=asked) for key, name in NAMES.items()}
    targets = data.metric("wait_target_seconds", by=("service_class",), asked=filters.asked())
    lines = sorted(
        {_line(row) for answer in answers.values() for row in answer.by(*BY)},
        key=lambda line: text.natural(*line),
    )
    if not lines:
        st.info(
            f"No workload waited here, {filters.window_name(answers['wait'].window)}. "
            "Take a longer window, or fewer filters."
        )
        frame.freshness(answers.values())
        return
    promised = {row.labels["service_class"]: row.value for row in targets.by("service_class") if row.value}
    if filters.from_url("order") == WORST:
        lines.sort(key=lambda line: _trouble(answers, line, promised), reverse=True)
    _stalled(registry, asked)
    _table(registry, answers, lines, promised)
    windowed = asked | {"window": answers["wait"].window}
    wait_reasons.show(registry, windowed)
    _charts(registry, answers, lines, promised)
    _more(registry, windowed)
    for report, title in (
        ("why", "reasons for waiting"),
        ("waits", "waiting"),
        ("preemptions", "preemption and restarts"),
        ("xdmod", "as Open XDMoD counts"),
    ):
        report_tables.show(registry, report, title, windowed)


def _stalled(registry: dict[str, MetricInfo], asked: Mapping[str, str]) -> None:
    """Say it where work could be placed and nothing is."""
    if STALLED not in registry:
        return
    only = {name: value for name, value in asked.items() if name in {"cluster", "as_of"}}
    stalled = data.metric(STALLED, by=("cluster", "gpu_model"), asked=only)
    rows = [row for row in stalled.by("cluster", "gpu_model") if row.value]
    if rows:
        told = ", ".join(
            f"{text.count(round(row.value or 0), 'workload')} on "
            f"{row.labels['gpu_model'] or 'nodes of no known model'} of {row.labels['cluster']}"
            for row in rows
        )
        st.warning(
            f"**A scheduler stands still.** Work that would fit waits, and none is placed: {told}."
            " `gpuledger why` tells more of each workload."
        )
        st.caption("What that means", help=frame.help_of(registry, STALLED))


def _more(registry: dict[str, MetricInfo], asked: Mapping[str, str]) -> None:
    metric_table.show(
        registry,
        "Where the time goes",
        WAYS,
        by=("queue", "service_class"),
        asked=asked,
        note="Time for quota, in checks and for a place is that of all workloads together.",
    )
    metric_table.show(
        registry,
        "How sure the percentiles are",
        LIMITS,
        by=("service_class",),
        asked=asked,
        note="In 95 of 100 cases the true percentile lies between from and to.",
    )
    metric_table.show(registry, "Flow, preemption and restarts", FLOWS, by=("queue",), asked=asked)


def _filters() -> dict[str, str]:
    known = data.metric("queue_depth_workloads", by=("cluster", "queue"), asked=filters.asked())
    waited = data.metric("queue_wait_seconds", by=("cluster", "queue"), asked=filters.asked())
    rows = (*known.by("cluster", "queue"), *waited.by("cluster", "queue"))
    columns = st.columns([3, 2, 2, 2, 2, 2])
    with columns[0]:
        queue = filters.choice("Queue", "queue", [row.labels["queue"] or text.NO_QUEUE for row in rows])
    with columns[1]:
        cluster = filters.choice("Cluster", "cluster", [row.labels["cluster"] for row in rows])
    with columns[2]:
        service_class = filters.service_class()
    with columns[3]:
        window = filters.window()
    with columns[4]:
        filters.fixed("Order", "order", ORDERS)
    with columns[5]:
        frame.auto_refresh()
    return filters.asked(queue=queue, cluster=cluster, service_class=service_class, window=window)


def _line(row: Value) -> tuple[str, ...]:
    return tuple(row.labels[label] for label in BY)


def _several_clusters(answers: dict[str, Answer]) -> bool:
    return len({row.labels["cluster"] for answer in answers.values() for row in answer.by(*BY)}) > 1


def _named(line: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(BY, line, strict=True))


def _trouble(
    answers: dict[str, Answer], line: tuple[str, ...], promised: dict[str, float]
) -> tuple[float, float, float]:
    """How many wait past the target, how far past it the longest wait lies, and how many wait."""

    def value(key: str) -> float:
        row = answers[key].where(**_named(line))
        return (row.value if row else None) or 0.0

    target = promised.get(line[-1])
    return value("past"), value("starving") / target if target else 0.0, value("depth")


def _table(
    registry: dict[str, MetricInfo],
    answers: dict[str, Answer],
    lines: list[tuple[str, ...]],
    promised: dict[str, float],
) -> None:
    def explained(key: str) -> str:
        info = registry.get(NAMES[key])
        return info.definition if info else ""

    several = _several_clusters(answers)
    columns = [
        *([Column(key="cluster", title="Cluster")] if several else []),
        Column(key="queue", title="Queue"),
        Column(key="class", title="Class"),
        Column(key="depth", title="Waiting", help=explained("depth"), number=True),
        Column(key="gpus", title="GPUs asked", help=explained("gpus"), number=True),
        *(
            Column(
                key=quantile,
                title=f"p{float(quantile) * 100:g} wait",
                help=f"Censored: counts those who still wait. {explained('wait')}",
                number=True,
            )
            for quantile in QUANTILES
        ),
        Column(
            key="started",
            title="p99 of started",
            help="Only workloads that were placed in the window: it cannot see who still waits.",
            number=True,
        ),
        Column(key="starving", title="Longest wait now", help=explained("starving"), number=True),
        Column(key="target", title="Target", help="On p99 and on the longest wait.", number=True),
        Column(key="past", title="Past target", help=explained("past"), number=True),
    ]
    tables.show(columns, [_row(answers, line, promised) for line in lines], caption="queues and classes")
    st.caption(
        "≥ lower bound: the true value is at least this · (few) rests on fewer than five · ▲ past target"
    )
    frame.freshness(answers.values())


def _row(
    answers: dict[str, Answer], line: tuple[str, ...], promised: dict[str, float]
) -> dict[str, Cell | str]:
    named = _named(line)
    cluster, queue, service_class = line
    target = promised.get(service_class)

    def cell(row: Value | None, unit: str, *, limit: float | None = None) -> Cell:
        if row is None:
            return Cell(shown=text.UNDEFINED, note="no workload")
        late = row.value is not None and limit is not None and row.value > limit
        return Cell(shown=row.shown(unit), bad=late, note=row.undefined_because)

    def wait(quantile: str, estimator: str) -> Value | None:
        return answers["wait"].where(**named, quantile=quantile, estimator=estimator)

    depth = answers["depth"].where(**named)
    past = answers["past"].where(**named)
    return {
        "cluster": cluster,
        "queue": Cell(
            shown=queue or text.NO_QUEUE,
            href=filters.link("jobs", state=filters.WAITING, queue=queue or text.NO_QUEUE, cluster=cluster),
        ),
        "class": text.class_name(service_class),
        "depth": cell(depth, "workloads") if depth else "0",
        "gpus": cell(answers["gpus"].where(**named), "gpus") if depth else "0",
        **{q: cell(wait(q, "censored"), "seconds", limit=target if q == "0.99" else None) for q in QUANTILES},
        "started": cell(wait("0.99", "started"), "seconds"),
        "starving": cell(answers["starving"].where(**named), "seconds", limit=target),
        "target": text.target(target) if target else "none",
        "past": cell(past, "workloads", limit=0) if past else "0",
    }


def _charts(
    registry: dict[str, MetricInfo],
    answers: dict[str, Answer],
    lines: list[tuple[str, ...]],
    promised: dict[str, float],
) -> None:
    several = _several_clusters(answers)

    def queue_of(row: Value) -> str:
        """Queues of two clusters may have one name."""
        queue = row.labels["queue"] or text.NO_QUEUE
        return f"{queue} · {row.labels['cluster']}" if several else queue

    waits: dict[tuple[str, ...], list[WaitDot]] = {}
    for row in answers["wait"].by(*BY, "quantile"):
        if row.value is not None and row.labels["estimator"] == "censored":
            dot = WaitDot(
                line=" · ".join((queue_of(row), text.class_name(row.labels["service_class"]))),
                quantile=row.labels["quantile"],
                service_class=row.labels["service_class"],
                seconds=row.value,
                lower_bound=row.lower_bound,
            )
            waits.setdefault(_line(row), []).append(dot)
    waited = [line for line in lines if line in waits]
    dots = [dot for line in waited[: longest.LINES_SHOWN] for dot in waits[line]]
    if dots:
        window = filters.window_name(answers["wait"].window)
        st.subheader(
            f"Queue wait against target, {window}",
            anchor=False,
            help=frame.help_of(registry, NAMES["wait"]),
        )
        st.plotly_chart(
            charts.wait_dots(dots, promised),
            config=charts.CONFIG,
            alt="p50, p90 and p99 of the queue wait per queue and class, with the target",
        )
        if len(waited) > longest.LINES_SHOWN:
            st.caption(f"The first {longest.LINES_SHOWN} of the {len(waited):,} lines of the table.")
    counted = {
        (queue_of(row), row.labels["service_class"]): row.value
        for row in answers["gpus"].by(*BY)
        if row.value
    }
    if counted:
        st.subheader(
            "GPUs asked by waiting workloads, now", anchor=False, help=frame.help_of(registry, NAMES["gpus"])
        )
        st.plotly_chart(
            charts.depth_bars(counted, "GPUs"),
            config=charts.CONFIG,
            alt="GPUs asked per queue, stacked by class",
        )
        if shortened := longest.note(counted, "queue"):
            st.caption(shortened)


if __name__ == "__main__":
    main()
