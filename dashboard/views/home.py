"""Home: is anyone waiting too long, and is there room."""

import streamlit as st

from dashboard.shared import charts, data, filters, frame, jobs_table, longest, verdict
from dashboard.shared import format as text
from dashboard.shared.data import Answer, MetricInfo, Value

LEAD = "What waits for GPUs, how long, and what is free."
LONGEST_SHOWN = 10


def main() -> None:
    """Draw the page."""
    frame.page("Waiting and room", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    asked = _filters()
    depth = data.metric("queue_depth_workloads", by=("service_class", "queue"), asked=asked)
    waits = data.metric("queue_wait_seconds", by=("service_class",), asked=asked)
    starving = data.metric("starvation_index_seconds", by=("service_class",), asked=asked)
    targets = data.metric("wait_target_seconds", by=("service_class",), asked=filters.asked())
    promised = {row.labels["service_class"]: row.value for row in targets.by("service_class") if row.value}
    sentence, late = verdict.of_cluster(waits, starving, promised)
    (st.error if late else st.success)(sentence)
    _alerts()
    _cluster_tiles(registry, asked, depth, window=waits.window)
    _class_tiles(registry, waits, starving, promised)
    _longest_waiting(asked)
    _depth(registry, depth)


def _alerts() -> None:
    """What fires, also where each class as a whole is well: one queue may not be."""
    rows = data.get("alerts", filters.asked())["rows"]
    firing = [row for row in rows if row["state"] == "firing"]
    if firing:
        pending = [row for row in rows if row["state"] == "pending"]
        st.page_link(
            "views/alerts.py", label=verdict.of_alerts(firing, pending), icon=":material/notifications:"
        )


def _filters() -> dict[str, str]:
    known = data.metric("held_gpus", by=("cluster",), asked=filters.asked())
    clusters = [row.labels["cluster"] for row in known.by("cluster")]
    columns = st.columns([2, 2, 2, 6])
    with columns[0]:
        cluster = filters.choice("Cluster", "cluster", clusters)
    with columns[1]:
        window = filters.window()
    with columns[2]:
        frame.auto_refresh()
    return filters.asked(cluster=cluster, window=window)


def _cluster_tiles(
    registry: dict[str, MetricInfo], asked: dict[str, str], depth: Answer, *, window: str
) -> None:
    states = ("queue_depth_gpus", "held_gpus", "free_gpus", "reserved_gpus")
    answers = {name: data.metric(name, asked=asked) for name in states}
    for name in ("preemptions_total", "evictions_total"):
        answers[name] = data.increase(name, window=window, asked=asked)
    tiles = st.columns(5)
    asking = answers["queue_depth_gpus"].total_shown()
    tiles[0].metric(
        "Waiting, workloads",
        depth.total_shown(),
        delta=f"asking {asking} GPUs",
        delta_color="off",
        delta_arrow="off",
        help=frame.help_of(registry, depth.metric),
        border=True,
        height="stretch",
    )
    _tile(tiles[1], registry, answers["free_gpus"], "Free, GPUs")
    _tile(tiles[2], registry, answers["held_gpus"], "Held by pods, GPUs")
    _tile(tiles[3], registry, answers["reserved_gpus"], "Quota reserved, GPUs")
    preempted = answers["preemptions_total"]
    others = answers["evictions_total"]
    bound = "≥ " if any(row.lower_bound for row in others.rows) else ""
    evicted = bound + text.count(round(others.total()), "other eviction")
    label = f"Preemptions, {filters.window_name(window)}"
    _tile(tiles[4], registry, preempted, label, note=f"and {evicted}")
    frame.freshness([depth, *answers.values()])


def _tile(
    where: st.delta_generator.DeltaGenerator,
    registry: dict[str, MetricInfo],
    answer: Answer,
    label: str,
    *,
    note: str = "",
) -> None:
    row = answer.rows[0] if answer.rows else None
    definition = frame.help_of(registry, answer.metric)
    if row is not None and row.value is None:
        definition = f"Not defined: {row.undefined_because}\n\n{definition}"
    where.metric(
        label,
        row.shown(answer.unit) if row else text.UNDEFINED,
        delta=note or None,
        delta_color="off",
        delta_arrow="off",
        help=definition,
        border=True,
        height="stretch",
    )


def _class_tiles(
    registry: dict[str, MetricInfo], waits: Answer, starving: Answer, promises: dict[str, float]
) -> None:
    window = filters.window_name(waits.window)
    st.subheader(f"Waits per class against their targets, {window}", anchor=False)
    shown = [
        c
        for c in text.CLASSES
        if c != "unclassified" or starving.where(service_class=c) or waits.where(service_class=c)
    ]
    tiles = st.columns(len(shown))
    for where, service_class in zip(tiles, shown, strict=True):
        promised = promises.get(service_class)
        with where.container(border=True):
            name = text.class_name(service_class)
            st.markdown(f"**{name}** · target {text.target(promised) if promised else 'none'}")
            p99 = waits.where(service_class=service_class, quantile="0.99", estimator="censored")
            left, right = st.columns(2)
            _wait_tile(left, "p99 queue wait", p99, promised, frame.help_of(registry, waits.metric))
            longest = starving.where(service_class=service_class)
            _wait_tile(right, "Longest wait now", longest, promised, frame.help_of(registry, starving.metric))
    frame.freshness([waits, starving])


def _wait_tile(
    where: st.delta_generator.DeltaGenerator,
    label: str,
    row: Value | None,
    promised: float | None,
    definition: str,
) -> None:
    value = row.value if row else None
    lower_bound = bool(row and row.lower_bound)
    late = value is not None and promised is not None and value > promised
    if value is None:
        because = row.undefined_because if row else ""
        told = because or "no workload of this class"
    elif promised is None:
        told = "no target"
    else:
        gap = text.duration(abs(value - promised))
        if lower_bound:
            # The true value is larger: inside it says nothing, past it is a minimum.
            told = f"at least {gap} past target" if late else "not known to be past target"
        else:
            told = f"{gap} past target" if late else f"{gap} inside target"
    where.metric(
        label,
        text.bounded(value, "seconds", lower_bound=lower_bound),
        delta=told,
        delta_color="red" if late else "off",
        delta_arrow="up" if late else "off",
        help=definition + ("\n\nRests on fewer than five workloads." if row and row.few else ""),
    )


def _longest_waiting(asked: dict[str, str]) -> None:
    st.subheader("Waiting workloads, longest wait now first", anchor=False)
    listed = data.workloads(
        {
            **{name: value for name, value in asked.items() if name != "window"},
            "state": filters.states_asked(filters.WAITING),
            "sort": "-waiting_seconds",
            "page_size": str(LONGEST_SHOWN),
        }
    )
    if not listed.items:
        st.success("Nobody waits for GPUs.")
        return
    targets = data.metric("wait_target_seconds", by=("service_class",), asked=filters.asked())
    jobs_table.show(listed.items, targets, caption="longest waiting workloads")
    shown = f"{len(listed.items)} of {text.count(listed.total, 'waiting workload')}"
    st.caption(f"{shown} · {text.age(listed.as_of, data.now())}")
    st.page_link("views/jobs.py", label="All waiting jobs", query_params={"state": filters.WAITING})


def _depth(registry: dict[str, MetricInfo], depth: Answer) -> None:
    counted = {
        (row.labels["queue"] or text.NO_QUEUE, row.labels["service_class"]): row.value
        for row in depth.by("queue", "service_class")
        if row.value
    }
    if not counted:
        return
    st.subheader("Queue depth by class, workloads", anchor=False, help=frame.help_of(registry, depth.metric))
    st.plotly_chart(
        charts.depth_bars(counted, "workloads"),
        config=charts.CONFIG,
        alt="Waiting workloads per queue, stacked by class",
    )
    if shortened := longest.note(counted, "queue"):
        st.caption(shortened)
    frame.freshness([depth])
    st.page_link("views/queues.py", label="Waits and targets per queue")


if __name__ == "__main__":
    main()
