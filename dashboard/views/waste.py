"""Waste: what held GPU-time was for, who wastes it and how, and what work is at risk."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard.shared import charts, data, filters, frame, longest, metric_table, report_tables, tables
from dashboard.shared import format as text
from dashboard.shared.charts import Labelled
from dashboard.shared.data import Answer, MetricInfo, Value
from dashboard.shared.gpu_time import MEANINGS
from dashboard.shared.metric_table import Shown
from dashboard.shared.tables import Cell, Column

LEAD = "What held GPU-time was for: useful, lost, idle, or unknown. Only what its holder did is called waste."
USERS_SHOWN = 15
# What the holder could have spared; the other losses were done to it.
SELF_INFLICTED = ("crash_lost", "backoff", "startup_over_limit", "idle", "resident_idle")
TABLE = {
    "held": "held_gpu_hours",
    "wasted": "wasted_gpu_hours",
    "ratio": "wastage_ratio",
    "hell": "hell_ratio",
    "lost": "work_lost_gpu_hours",
    "at_most": "work_lost_at_most_gpu_hours",
    "known": "activity_known_ratio",
}
TITLES = {
    "held": "Held",
    "useful": "Useful",
    "wasted": "Wasted",
    "ratio": "Wastage",
    "hell": "Hell ratio",
    "cause": "Mostly",
    "lost": "Work lost",
    "at_most": "at most",
    "known": "Activity known",
}
NOW = ("goodput_ratio", "at_risk_gpu_hours", "checkpoint_age_over_budget_workloads", "never_active_gpus")


def main() -> None:
    """Draw the page."""
    frame.page("Waste", LEAD, _draw)


def _draw() -> None:
    registry = data.registry()
    asked = _filters()
    answers = {key: data.metric(name, by=("team",), asked=asked) for key, name in TABLE.items()}
    causes = data.metric("held_gpu_hours", by=("team", "cause"), asked=asked)
    held = [row for row in answers["held"].by("team") if row.value]
    if not held:
        st.info(
            f"No GPU was held here, {filters.window_name(answers['held'].window)}. "
            "Take a longer window, or fewer filters."
        )
        frame.freshness(answers.values())
        return
    sentence, wasteful = verdict(answers["wasted"], answers["held"], answers["ratio"], causes)
    (st.warning if wasteful else st.success)(sentence)
    _tiles(registry, asked)
    st.subheader("By team", anchor=False)
    _teams(registry, answers, causes)
    frame.freshness([*answers.values(), causes])
    st.subheader("What held GPU-time was for", anchor=False)
    hours = hours_by(causes)
    st.plotly_chart(charts.cause_bars(hours), config=charts.CONFIG)
    if shortened := longest.note(hours, "team"):
        st.caption(f"{shortened} The table has all.")
    _meanings(causes)
    _users(registry, asked)
    metric_table.show(
        registry,
        "Which device would do",
        (Shown(metric="right_size_gpus", title="GPUs"),),
        by=("team",),
        apart=("fits",),
        asked=asked,
        note="The smallest device that the most memory in use fits on, with 20 % to spare.",
    )
    # The same instant and window as the page's own figures, also where its address names none.
    instant = {"as_of": f"{answers['held'].as_of:%Y-%m-%dT%H:%M:%S.%fZ}", "window": answers["held"].window}
    report_tables.show(registry, "waste", "waste", asked | instant)


def _filters() -> dict[str, str]:
    by = ("cluster", "team", "queue", "gpu_model")
    rows = data.metric("held_gpu_hours", by=by, asked=filters.asked(window="30d")).by(*by)
    columns = st.columns([2, 3, 3, 2, 2, 2, 2])
    with columns[0]:
        cluster = filters.choice("Cluster", "cluster", [row.labels["cluster"] for row in rows])
    with columns[1]:
        team = filters.choice("Team", "team", [row.labels["team"] for row in rows])
    with columns[2]:
        queue = filters.choice("Queue", "queue", [row.labels["queue"] or text.NO_QUEUE for row in rows])
    with columns[3]:
        model = filters.choice("GPU model", "gpu_model", [row.labels["gpu_model"] for row in rows])
    with columns[4]:
        service_class = filters.service_class()
    with columns[5]:
        window = filters.window()
    with columns[6]:
        frame.auto_refresh()
    return filters.asked(
        cluster=cluster,
        team=team,
        queue=queue,
        gpu_model=model,
        service_class=service_class,
        window=window,
    )


def verdict(wasted: Answer, held: Answer, ratio: Answer, causes: Answer) -> tuple[str, bool]:
    """Which team wastes most and how, in a sentence; and whether anybody wastes."""
    known = [row for row in wasted.by("team") if row.value is not None]
    most = max(known, key=lambda row: row.value or 0.0, default=None)
    unseen = unknown_share(causes)
    unseen_told = f" Of {text.share(unseen)} of held time nobody knows whether it was used." if unseen else ""
    if most is None or not most.value:
        window = filters.window_name(wasted.window)
        return f"No waste of anybody's own making, {window}.{unseen_told}", False
    team = most.labels["team"]
    whole = held.where(team=team)
    part = ratio.where(team=team)
    share = (
        f" ({text.share(part.value, lower_bound=part.lower_bound)})"
        if part and part.value is not None
        else ""
    )
    of = f" of the {whole.shown(held.unit)} it held{share}" if whole and whole.value else ""
    cause = main_cause(causes, team)
    how = f", mostly {text.words(cause)}: {MEANINGS[cause]}" if cause else ""
    amount = most.shown("gpu_hours")
    return f"{team or '(no team)'} wasted most: {amount} GPU-hours{of}{how}.{unseen_told}", True


def main_cause(causes: Answer, team: str) -> str:
    """The self-inflicted cause that cost a team most; empty where none cost anything."""
    mine = {
        row.labels["cause"]: row.value or 0.0
        for row in causes.by("team", "cause")
        if row.labels["team"] == team and row.labels["cause"] in SELF_INFLICTED
    }
    return max(mine, key=lambda cause: mine[cause], default="") if any(mine.values()) else ""


def unknown_share(causes: Answer) -> float:
    """The share of held time whose activity nobody knows."""
    rows = causes.by("team", "cause")
    whole = sum(row.value or 0.0 for row in rows)
    unknown = sum(row.value or 0.0 for row in rows if row.labels["cause"] == "unknown")
    return unknown / whole if whole else 0.0


def hours_by(causes: Answer) -> Mapping[tuple[str, str], Labelled]:
    """GPU-hours by team and cause, as the chart wants them."""
    return {
        (row.labels["team"] or "(no team)", row.labels["cause"]): Labelled(
            length=row.value, shown=_of_cause(causes, row)
        )
        for row in causes.by("team", "cause")
        if row.value
    }


def _of_cause(causes: Answer, row: Value) -> str:
    """GPU-hours of a cause; useful ones are at least so many where some activity is unknown."""
    unknown = causes.where(team=row.labels["team"], cause="unknown")
    at_least = row.labels["cause"] == "useful" and bool(unknown and unknown.value)
    return text.bounded(row.value, causes.unit, lower_bound=row.lower_bound or at_least, few=row.few)


def _tiles(registry: Mapping[str, MetricInfo], asked: dict[str, str]) -> None:
    # Goodput is of nodes: whose GPUs were useful does not divide what the cluster has.
    of_nodes = {
        name: value for name, value in asked.items() if name in {"cluster", "gpu_model", "window", "as_of"}
    }
    tiles = st.columns(len(NOW))
    found = []
    for tile, name in zip(tiles, NOW, strict=True):
        answer = data.metric(name, asked=of_nodes if name == "goodput_ratio" else asked)
        found.append(answer)
        row = answer.where()
        info = registry.get(name)
        title, explained = (info.title, info.help) if info else (name, name)
        # Some are of the instant, some of the window: each says which.
        named = f"{title}, {filters.window_name(answer.window)}"
        tile.metric(named, row.shown(answer.unit) if row else text.UNDEFINED, help=explained)
        if row and row.value is None:
            tile.caption(row.undefined_because)
    frame.freshness(found)


def _teams(registry: dict[str, MetricInfo], answers: dict[str, Answer], causes: Answer) -> None:
    keys = ("held", "useful", "wasted", "ratio", "hell", "cause", "lost", "at_most", "known")
    columns = [
        Column(key="team", title="Team"),
        *(
            Column(
                key=key,
                title=TITLES[key],
                help=frame.help_of(registry, TABLE.get(key, "held_gpu_hours")),
                number=key != "cause",
            )
            for key in keys
        ),
    ]
    teams = [row.labels["team"] for row in _by_waste(answers["wasted"].by("team"))]
    tables.show(columns, [_team(answers, causes, team) for team in teams], caption="waste by team")
    st.caption(
        "GPU-hours · ≥ lower bound: some activity is unknown, so the true value is at least this · "
        "work lost to preemption and infrastructure is shown and never charged"
    )


def _by_waste(rows: Sequence[Value]) -> list[Value]:
    return sorted(rows, key=lambda row: (-(row.value or 0.0), text.natural(*row.labels.values())))


def _team(answers: dict[str, Answer], causes: Answer, team: str) -> dict[str, Cell | str]:
    cells: dict[str, Cell | str] = {
        key: _cell(answer.where(team=team), answer.unit) for key, answer in answers.items()
    }
    useful, unknown = (causes.where(team=team, cause=cause) for cause in ("useful", "unknown"))
    cause = main_cause(causes, team)
    name = team or "(no team)"
    return cells | {
        "team": Cell(shown=name, href=_jobs(team=team)),
        "useful": text.bounded(
            useful.value if useful else 0.0, causes.unit, lower_bound=bool(unknown and unknown.value)
        ),
        "cause": Cell(shown=text.words(cause) or text.UNDEFINED, note=MEANINGS.get(cause, "")),
    }


def _jobs(**whose: str) -> str:
    """The jobs behind a figure of waste, the most wasteful first."""
    return filters.link("jobs", **whose, sort="-wasted_gpu_hours", as_of=filters.from_url("as_of"))


def _cell(row: Value | None, unit: str) -> Cell:
    if row is None:
        return Cell(shown=text.UNDEFINED, note="nothing was held")
    return Cell(shown=row.shown(unit), note=row.undefined_because)


def _meanings(causes: Answer) -> None:
    present = {row.labels["cause"] for row in causes.by("team", "cause") if row.value}
    with st.expander("What the causes mean"):
        tables.show(
            [
                Column(key="cause", title="Cause"),
                Column(key="means", title="Meaning"),
                Column(key="whose", title="Charged"),
            ],
            [
                {
                    "cause": text.words(cause),
                    "means": MEANINGS[cause],
                    "whose": "yes" if cause in SELF_INFLICTED else "no",
                }
                for cause in charts.CAUSE_COLOURS
                if cause in present
            ],
            caption="causes",
        )


def _users(registry: dict[str, MetricInfo], asked: dict[str, str]) -> None:
    by = ("team", "user_name")
    wasted = data.metric("wasted_gpu_hours", by=by, asked=asked)
    wasteful = [row for row in _by_waste(wasted.by(*by)) if row.value]
    rows = wasteful[:USERS_SHOWN]
    if not rows:
        return
    ratio = data.metric("wastage_ratio", by=by, asked=asked)
    st.subheader("Who wastes most", anchor=False)
    columns = [
        Column(key="user", title="User"),
        Column(key="team", title="Team"),
        Column(key="wasted", title="Wasted", help=frame.help_of(registry, "wasted_gpu_hours"), number=True),
        Column(key="ratio", title="Wastage", help=frame.help_of(registry, "wastage_ratio"), number=True),
    ]
    shown: list[dict[str, Cell | str]] = [
        {
            "user": Cell(
                shown=row.labels["user_name"] or "(unknown)",
                href=_jobs(team=row.labels["team"], user=row.labels["user_name"]),
            ),
            "team": Cell(shown=row.labels["team"], href=_jobs(team=row.labels["team"])),
            "wasted": row.shown(wasted.unit),
            "ratio": _cell(ratio.where(**row.labels), ratio.unit),
        }
        for row in rows
    ]
    tables.show(columns, shown, caption="waste by user")
    if len(rows) < len(wasteful):
        st.caption(f"{len(rows)} of {len(wasteful)} users who wasted; the table By user below has all.")
    frame.freshness([wasted, ratio])


if __name__ == "__main__":
    main()
