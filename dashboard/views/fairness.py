"""Fairness: whom the cluster owes GPU-hours, who has what of the quotas, and how that came about."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import streamlit as st

from dashboard.shared import charts, data, filters, frame, metric_table, report_tables, tables
from dashboard.shared import format as text
from dashboard.shared.data import Answer, MetricInfo, Value
from dashboard.shared.metric_table import Shown
from dashboard.shared.tables import Cell, Column
from domain.window import parse_duration

LEAD = "What each holder of quota should have, has, lends, borrows, and is owed."
BY = ("cluster", "pool", "queue")
POOL = ("cluster", "pool")
DEBT = "fairness_debt_gpu_hours"
# The columns of a pool's table: key, metric, title.
STATES = (
    ("quota", "quota_gpus", "Quota"),
    ("demand", "demanded_gpus", "Demand"),
    ("entitled", "entitled_gpus", "Entitled"),
    ("received", "received_gpus", "Held"),
    ("lent", "lent_gpus", "Lent"),
    ("borrowed", "borrowed_gpus", "Borrowed"),
    ("over", "over_quota_gpus", "Over quota"),
    ("debt", DEBT, "Debt, GPU-hours"),
)
OF_POOL = (
    ("pool_capacity_gpus", "capacity"),
    ("fairness_error_ratio", "fairness error"),
    ("jains_index_ratio", "Jain's index"),
    ("capacity_without_quota_gpus", "in no quota"),
    ("from_unassigned_gpus", "borrowed of nobody's quota"),
)
LEDGER = (
    ("entitled", "entitled_gpu_hours", "+ entitled"),
    ("received", "received_gpu_hours", "- received"),
    ("forgiven", "forgiven_gpu_hours", "- forgiven"),
)
GOODPUT = "goodput_ratio"
POINTS = 12
# Less than this is not worth a sentence or a line.
NOTHING_OWED = 0.05
LINES_SHOWN = 8
NOBODY_YET = "(no team yet)"


def main() -> None:
    """Draw the page."""
    frame.page("Fairness", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    asked, pool, window = _filters()
    states = {key: data.metric(metric, by=BY, asked=asked) for key, metric, _ in STATES}
    lines = sorted(
        {
            _line(row)
            for answer in states.values()
            for row in answer.by(*BY)
            if row.value and pool in {"", row.labels["pool"]}
        },
        key=lambda line: text.natural(*line),
    )
    if not lines:
        st.info(
            "Nobody holds, asks for, or is promised a GPU here. Quotas are read from Kueue, Volcano and "
            "ResourceQuotas; without any, each team that asks for GPUs is shown."
        )
        frame.freshness(states.values())
        return
    shown = [row for row in states["debt"].by(*BY) if row.value is not None and _line(row) in lines]
    _verdict(shown)
    _debt_over_time(registry, asked, states["debt"], shown, window)
    teams = _teams(data.metric("quota_gpus", by=(*BY, "team"), asked=asked))
    of_teams = data.metric(DEBT, by=(*BY, "team"), asked=asked)
    pools = {metric: data.metric(metric, by=POOL, asked=asked) for metric, _ in OF_POOL}
    models = data.metric("pool_capacity_gpus", by=(*POOL, "gpu_model"), asked=asked)
    for name in dict.fromkeys(line[:2] for line in lines):
        _pool_line(registry, name, pools, models)
        inside = [line for line in lines if line[:2] == name]
        _pool_table(registry, states, inside, teams)
        _shared(of_teams, inside)
        _loans(states, pools["from_unassigned_gpus"], inside)
    _ledger(registry, asked, states["debt"], lines, window)
    frame.freshness([*states.values(), *pools.values()])
    metric_table.show(
        registry,
        "By Kueue's own measure",
        (Shown(metric="kueue_weighted_share_permille", title="Weighted share, per mille"),),
        by=("cluster", "queue"),
        asked=asked,
        note="It measures what a queue borrows, not what it is owed; Kueue writes it rounded up.",
    )
    metric_table.show(
        registry,
        "With CPUs and memory",
        (Shown(metric="dominant_entitled_gpus", title="Entitled GPUs"),),
        by=("cluster", "pool", "queue"),
        asked=asked,
        note="By dominant resource fairness, where Kueue gives out other resources together with GPUs.",
    )
    report_tables.show(registry, "fairness", "fairness", asked | {"window": window})


def _filters() -> tuple[dict[str, str], str, str]:
    known = data.metric("quota_gpus", by=POOL, asked=filters.asked()).by(*POOL)
    columns = st.columns([2, 4, 2, 2, 2])
    with columns[0]:
        cluster = filters.choice("Cluster", "cluster", [row.labels["cluster"] for row in known])
    with columns[1]:
        pool = filters.choice("Pool", "pool", [row.labels["pool"] for row in known])
    with columns[2]:
        window = filters.window()
    with columns[3]:
        frame.auto_refresh()
    return filters.asked(cluster=cluster), pool, window or "1d"


def _teams(quotas: Answer) -> dict[tuple[str, ...], str]:
    """Whose each line is: a team, all that share it, or nobody's yet."""
    return {_line(row): row.labels["team"] or NOBODY_YET for row in quotas.by(*BY, "team")}


def _line(row: Value) -> tuple[str, ...]:
    return tuple(row.labels[label] for label in BY)


def _hours(value: float) -> str:
    return f"{value:,.1f}"


def _verdict(debts: Sequence[Value]) -> None:
    most = max(debts, key=lambda row: row.value or 0.0, default=None)
    least = min(debts, key=lambda row: row.value or 0.0, default=None)
    if most is None or (most.value or 0.0) < NOTHING_OWED:
        st.success("The cluster owes nobody GPU-hours.")
        return
    sentence = (
        f"The cluster owes {most.labels['queue']} most, in pool {most.labels['pool']}: "
        f"{_hours(most.value or 0.0)} GPU-hours."
    )
    if least is not None and (least.value or 0.0) < -NOTHING_OWED:
        sentence += (
            f" {least.labels['queue']} has had {_hours(-(least.value or 0.0))} GPU-hours more than its"
            f" share in pool {least.labels['pool']}."
        )
    st.warning(sentence)


def _pool_line(
    registry: dict[str, MetricInfo], pool: tuple[str, ...], answers: Mapping[str, Answer], models: Answer
) -> None:
    """The heading of a pool, and its own figures in a line."""
    cluster, name = pool
    st.subheader(f"Pool {name}, cluster {cluster}, now", anchor=False)
    labels = {"cluster": cluster, "pool": name}
    told = []
    for metric, title in OF_POOL:
        row = answers[metric].where(**labels)
        if row is not None and row.value is not None:
            unit = " GPUs" if answers[metric].unit == "gpus" else ""
            told.append(f"{title} {row.shown(answers[metric].unit)}{unit}")
        elif row is not None:
            told.append(f"{title} not defined: {row.undefined_because}")
    known = models.where(**labels)
    model = known.labels.get("gpu_model", "") if known else ""
    if GOODPUT in registry and model:
        # The throughput of the pair: fairness alone can be had by idling.
        asked = {"gpu_model": model, "cluster": cluster}
        row = data.metric(GOODPUT, by=("gpu_model",), asked=filters.asked(**asked)).where(gpu_model=model)
        if row is not None and row.value is not None:
            told.append(f"goodput of {model} {row.shown('ratio')}")
    definitions = "\n\n".join(frame.help_of(registry, metric) for metric, _ in OF_POOL)
    st.caption(" · ".join(told), help=definitions)


def _pool_table(
    registry: dict[str, MetricInfo],
    states: Mapping[str, Answer],
    lines: Sequence[tuple[str, ...]],
    teams: Mapping[tuple[str, ...], str],
) -> None:
    columns = [
        Column(key="queue", title="Holder of quota"),
        Column(key="team", title="Team", help="Who uses the quota; all of them where several share it."),
        *(
            Column(key=key, title=title, number=True, help=_definition(registry, metric))
            for key, metric, title in STATES
        ),
    ]
    rows = [
        _row(states, dict(zip(BY, line, strict=True))) | {"team": teams.get(line, NOBODY_YET)}
        for line in lines
    ]
    tables.show(columns, rows, caption=f"holders of quota in pool {lines[0][1]}, {lines[0][0]}")


def _shared(debts: Answer, lines: Sequence[tuple[str, ...]]) -> None:
    """Whose part of a shared holder's debt is which: one team may be owed what another has had."""
    of_line: dict[tuple[str, ...], list[str]] = {line: [] for line in lines}
    for row in debts.by(*BY, "team"):
        if row.value is not None and _line(row) in of_line:
            of_line[_line(row)].append(f"{text.literal(row.labels['team'])} {_hours(row.value)}")
    for (_, _, queue), parts in of_line.items():
        if len(parts) > 1:
            st.caption(f"Debt of {text.literal(queue)} by team, GPU-hours: {', '.join(parts)}.")


def _loans(states: Mapping[str, Answer], unassigned: Answer, lines: Sequence[tuple[str, ...]]) -> None:
    """Whether what is lent is what is borrowed: each side is a figure of its own."""

    def whole(key: str) -> float:
        found = (states[key].where(**dict(zip(BY, line, strict=True))) for line in lines)
        return sum(row.value or 0.0 for row in found if row is not None)

    nobodys = unassigned.where(**dict(zip(POOL, lines[0], strict=False)))
    if not whole("borrowed") or nobodys is None or nobodys.value is None:
        return
    st.caption(
        f"Lent {text.gpus(whole('lent'))} = borrowed {text.gpus(whole('borrowed'))} - "
        f"{text.gpus(nobodys.value)} GPUs of nobody's quota."
    )


def _row(states: Mapping[str, Answer], labels: Mapping[str, str]) -> dict[str, Cell | str]:
    cells: dict[str, Cell | str] = {"queue": labels["queue"]}
    for key, answer in states.items():
        row = answer.where(**labels)
        if row is None:
            cells[key] = text.UNDEFINED
        elif key == "debt" and row.value is not None:
            cells[key] = _hours(row.value)
        else:
            bad = key == "over" and bool(row.value)
            cells[key] = Cell(shown=row.shown(answer.unit), note=row.undefined_because, bad=bad)
    return cells


def _debt_over_time(
    registry: dict[str, MetricInfo],
    asked: Mapping[str, str],
    debts: Answer,
    shown: Sequence[Value],
    window: str,
) -> None:
    largest = sorted(
        (row for row in shown if abs(row.value or 0.0) >= NOTHING_OWED),
        key=lambda row: -abs(row.value or 0.0),
    )[:LINES_SHOWN]
    if not largest:
        return
    lines: dict[str, list[tuple[datetime, float]]] = {_named(_line(row)): [] for row in largest}
    for at, answer in _history(asked, debts, window):
        for row in answer.by(*BY):
            if row.value is not None and _named(_line(row)) in lines:
                lines[_named(_line(row))].append((at, row.value))
    st.subheader(
        f"Debt over time, {filters.window_name(window)}", anchor=False, help=frame.help_of(registry, DEBT)
    )
    st.plotly_chart(
        charts.debt_lines(lines),
        config=charts.CONFIG,
        alt="GPU-hours that the cluster owes to each holder of quota over the window",
    )


def _named(line: tuple[str, ...]) -> str:
    cluster, pool, queue = line
    return f"{queue} · {pool} · {cluster}"


def _history(asked: Mapping[str, str], debts: Answer, window: str) -> list[tuple[datetime, Answer]]:
    """The debts at evenly spaced instants of the window; the last are those that the page shows."""
    length = parse_duration(window)
    instants = [debts.as_of - length * part / POINTS for part in range(POINTS, 0, -1)]
    return [
        *((at, data.metric(DEBT, by=BY, asked={**asked, "as_of": _written(at)})) for at in instants),
        (debts.as_of, debts),
    ]


def _written(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _ledger(
    registry: dict[str, MetricInfo],
    asked: Mapping[str, str],
    debts: Answer,
    lines: Sequence[tuple[str, ...]],
    window: str,
) -> None:
    opened_at = debts.as_of - parse_duration(window)
    opening = data.metric(DEBT, by=BY, asked={**asked, "as_of": _written(opened_at)})
    parts = {key: data.metric(metric, by=BY, asked={**asked, "window": window}) for key, metric, _ in LEDGER}
    st.subheader(f"The ledger in GPU-hours, {filters.window_name(window)}", anchor=False)
    columns = [
        Column(key="queue", title="Holder of quota"),
        Column(key="pool", title="Pool"),
        Column(key="opening", title="Debt at the start", number=True, help=_definition(registry, DEBT)),
        *(
            Column(key=key, title=title, number=True, help=_definition(registry, metric))
            for key, metric, title in LEDGER
        ),
        Column(key="closing", title="= debt now", number=True, help=_definition(registry, DEBT)),
    ]
    rows: list[dict[str, Cell | str]] = []
    for line in lines:
        labels = dict(zip(BY, line, strict=True))

        def shown(answer: Answer, labels: Mapping[str, str] = labels) -> str:
            row = answer.where(**labels)
            if row is None:
                return _hours(0.0) if answer is opening else text.UNDEFINED
            return _hours(row.value) if row.value is not None else text.UNDEFINED

        told: dict[str, Cell | str] = {key: shown(answer) for key, answer in parts.items()}
        rows.append(
            {"queue": labels["queue"], "pool": labels["pool"], "opening": shown(opening)}
            | told
            | {"closing": shown(debts)}
        )
    tables.show(columns, rows, caption="ledger of the fairness debt")
    frame.freshness([*parts.values(), debts])


def _definition(registry: dict[str, MetricInfo], metric: str) -> str:
    return registry[metric].definition if metric in registry else ""


if __name__ == "__main__":
    main()
