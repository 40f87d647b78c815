"""Policy: room for interactive work, who takes it, the queue's cap, and what can be written better."""

from collections.abc import Mapping

import streamlit as st

from dashboard.shared import (
    capacity_charts,
    charts,
    data,
    filters,
    frame,
    metric_table,
    report_tables,
    tables,
)
from dashboard.shared import format as text
from dashboard.shared.data import Answer, MetricInfo
from dashboard.shared.metric_table import Shown
from dashboard.shared.tables import Cell, Column

LEAD = "Whether the interactive reserve is kept, how full the queue is, and what can be written better."
POOL = ("cluster", "gpu_model")
# What looks back names its window in `{window}`.
RESERVE = {
    "interactive_reserve_shortfall_gpus": "Missing now",
    "interactive_reserve_shortfall_gpu_hours": "Missing, {window}, GPU-h",
    "free_gpus": "Free now",
    "preemptible_gpus": "Preemptible now",
    "interactive_domination_ratio": "Largest user's part now",
    "interactive_domination_users": "Users above their part now",
}
BAD = {
    "interactive_reserve_shortfall_gpus",
    "interactive_reserve_shortfall_gpu_hours",
    "interactive_domination_users",
}
FINDINGS = "lint_findings_workloads"
NO_SUCH_TEAM = "(no team)"


def main() -> None:
    """Draw the page."""
    frame.page("Policy", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    asked = _filters()
    thresholds = data.metric("policy_threshold_ratio", by=("rule",), asked=filters.asked())
    limits = {row.labels["rule"]: row.value for row in thresholds.by("rule") if row.value is not None}
    _reserve(registry, asked, limits)
    _backpressure(registry, asked, limits)
    _rules(registry, asked)
    _lint(registry, asked)
    report_tables.show(registry, "policy", "policy", asked)
    report_tables.show(registry, "lint", "what can be written better", asked)


def _filters() -> dict[str, str]:
    known = data.metric("capacity_gpus", by=("cluster",), asked=filters.asked()).by("cluster")
    columns = st.columns([2, 2, 2, 6])
    with columns[0]:
        cluster = filters.choice("Cluster", "cluster", [row.labels["cluster"] for row in known])
    with columns[1]:
        window = filters.window()
    with columns[2]:
        frame.auto_refresh()
    return filters.asked(cluster=cluster, window=window)


def _reserve(registry: dict[str, MetricInfo], asked: dict[str, str], limits: Mapping[str, float]) -> None:
    st.subheader("Interactive reserve", anchor=False)
    answers = {name: data.metric(name, by=POOL, asked=asked) for name in RESERVE}
    missing = answers["interactive_reserve_shortfall_gpus"]
    lines = sorted({tuple(row.labels[name] for name in POOL) for row in missing.by(*POOL)})
    if not lines:
        st.info("No node with GPUs is known here, so there is no reserve to keep.")
        frame.freshness(answers.values())
        return
    part = text.quantity(limits.get("interactive_reserve_ratio"), "ratio")
    short, users = missing.total(), answers["interactive_domination_users"].total()
    if short or users:
        st.error(
            f"Now {missing.total_shown()} GPUs are missing from the reserve of {part}; "
            f"{text.count(round(users), 'user')} above their part of the interactive pool."
        )
    else:
        st.success(
            f"Now the reserve of {part} is kept on every model, and no user takes more than their part."
        )
    columns = [
        *(
            Column(key=name, title=title)
            for name, title in (("cluster", "Cluster"), ("gpu_model", "GPU model"))
        ),
        *(
            Column(
                key=name,
                title=title.format(window=filters.window_name(answers[name].window)),
                number=True,
                help=_definition(registry, name),
            )
            for name, title in RESERVE.items()
        ),
    ]
    tables.show(columns, [_line(answers, line, limits) for line in lines], caption="reserve per model")
    frame.freshness(answers.values())


def _line(
    answers: Mapping[str, Answer], line: tuple[str, ...], limits: Mapping[str, float]
) -> dict[str, Cell | str]:
    labels = dict(zip(POOL, line, strict=True))
    cells: dict[str, Cell | str] = {**labels, "gpu_model": labels["gpu_model"] or "(not known)"}
    for name, answer in answers.items():
        row = answer.where(**labels)
        if row is None:
            cells[name] = text.UNDEFINED
            continue
        above = name == "interactive_domination_ratio" and (row.value or 0) > limits.get(
            "domination_ratio", 1
        )
        bad = above or (name in BAD and bool(row.value))
        cells[name] = Cell(shown=row.shown(answer.unit), bad=bad, note=row.undefined_because)
    return cells


def _backpressure(
    registry: dict[str, MetricInfo], asked: dict[str, str], limits: Mapping[str, float]
) -> None:
    depth = data.metric("queue_depth_workloads", asked=asked)
    full = data.metric("queue_cap_ratio", asked=asked)
    soon = data.metric("queue_cap_seconds", asked=asked)
    new = data.metric("submitted_workloads", by=("team",), asked=asked)
    st.subheader("The queue against its cap", anchor=False)
    part = full.rows[0].value if full.rows else None
    if part is None:
        st.info("No workload asked for GPUs yet, so nothing presses on the queue.")
        frame.freshness([depth, full, soon, new])
        return
    warned = part >= limits.get("queue_cap_warn_ratio", 1)
    tiles = st.columns(3)
    shown = (
        ("Waiting now, workloads", depth.total_shown(), depth.metric, ""),
        ("Of the cap, now", full.rows[0].shown(full.unit), full.metric, "near the cap" if warned else ""),
        (
            f"Until the cap is reached, as the queue grew in the {filters.window_name(soon.window)}",
            soon.rows[0].shown(soon.unit),
            soon.metric,
            soon.rows[0].undefined_because,
        ),
    )
    for where, (label, value, name, note) in zip(tiles, shown, strict=True):
        where.metric(
            label,
            value,
            delta=note or None,
            delta_color="red" if note == "near the cap" else "off",
            delta_arrow="off",
            help=frame.help_of(registry, name),
            border=True,
            height="stretch",
        )
    most = sorted((row for row in new.by("team") if row.value), key=lambda row: -(row.value or 0))
    if most:
        total = new.total()
        told = ", ".join(
            f"{row.labels['team'] or NO_SUCH_TEAM} {text.gpus(row.value)} "
            f"({text.quantity((row.value or 0) / total, 'ratio')})"
            for row in most[:5]
        )
        st.caption(
            f"Submitted, {filters.window_name(new.window)}: {told}",
            help=frame.help_of(registry, new.metric),
        )
    frame.freshness([depth, full, soon, new])


def _rules(registry: dict[str, MetricInfo], asked: dict[str, str]) -> None:
    metric_table.show(
        registry,
        "Rules of preemption and of checkpoints",
        (
            Shown(metric="protection_broken_preemptions", title="Preempted within the protection window"),
            Shown(metric="tier_rule_broken_preemptions", title="Preempted, not of the lowest class"),
            Shown(metric="checkpoint_age_over_budget_workloads", title="Past their checkpoint budget"),
            Shown(metric="at_risk_gpu_hours", title="At risk"),
        ),
        by=("team",),
        asked=asked,
        nothing="No preemption broke a rule, and no work is at risk.",
    )
    metric_table.show(
        registry,
        "Pods refused",
        (Shown(metric="pod_denials_total", title="Refused"),),
        by=("team", "cause"),
        asked=asked,
    )


def _lint(registry: dict[str, MetricInfo], asked: dict[str, str]) -> None:
    answer = data.metric(FINDINGS, by=("team",), asked=asked)
    window = filters.window_name(answer.window)
    st.subheader(
        f"What can be written better, {window}", anchor=False, help=frame.help_of(registry, FINDINGS)
    )
    rows = answer.by("team", "rule")
    if not rows:
        st.info("No workload asked for GPUs in the window.")
        frame.freshness([answer])
        return
    observed = list(dict.fromkeys(row.labels["rule"] for row in rows if row.value is not None))
    unseen = {row.labels["rule"]: row.undefined_because for row in rows if row.value is None}
    teams = sorted({row.labels["team"] for row in rows}, key=text.natural)
    counted = {
        (row.labels["team"] or NO_SUCH_TEAM, row.labels["rule"]): row.value for row in rows if row.value
    }
    if counted:
        st.plotly_chart(
            capacity_charts.findings(counted),
            config=charts.CONFIG,
            alt="Workloads that break each rule, by team",
        )
    else:
        st.success("No workload breaks a rule that can be observed.")
    columns = [
        Column(key="team", title="Team"),
        *(Column(key=rule, title=text.words(rule), number=True) for rule in observed),
    ]
    table: list[dict[str, Cell | str]] = []
    for team in teams:
        cells: dict[str, Cell | str] = {
            "team": Cell(shown=team or NO_SUCH_TEAM, href=filters.link("jobs", team=team) if team else "")
        }
        for rule in observed:
            row = answer.where(team=team, rule=rule)
            cells[rule] = row.shown(answer.unit) if row else text.UNDEFINED
        table.append(cells)
    tables.show(columns, table, caption="findings per team and rule")
    for rule, because in unseen.items():
        st.caption(f"{text.words(rule)}: {because}")
    frame.freshness([answer])


def _definition(registry: dict[str, MetricInfo], name: str) -> str:
    return registry[name].definition if name in registry else ""


if __name__ == "__main__":
    main()
