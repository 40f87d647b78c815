"""Chargeback: what a month cost, by team, whether it is closed, and whether its books balance."""

from datetime import datetime

import streamlit as st

from dashboard.shared import (
    charts,
    data,
    filters,
    frame,
    metric_table,
    report_tables,
    statement_close,
    statement_files,
    statement_tables,
)
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.metric_table import Shown
from dashboard.shared.statement_text import amount, hours
from dashboard.shared.statement_words import HELP, NO_ACTIVITY
from domain.observed import coverage_words

LEAD = "Who held which GPU-hours in a month, what they were good for, and what they cost."
CURRENT = "current"
MONTHS_OFFERED = 13
BUDGETS = (
    Shown(metric="budget_gpu_hours", title="Budget"),
    Shown(metric="budget_burned_gpu_hours", title="Burned"),
    Shown(metric="budget_burned_ratio", title="Of the budget"),
    Shown(metric="budget_forecast_ratio", title="At the end, as it goes"),
)
MONEY_BUDGETS = (
    Shown(metric="budget_money", title="Budget"),
    Shown(metric="budget_burned_money", title="Burned"),
    Shown(metric="budget_money_burned_ratio", title="Of the budget"),
    Shown(metric="budget_money_forecast_ratio", title="At the end, as it goes"),
)


def main() -> None:
    """Draw the page."""
    frame.page("Chargeback", LEAD, _draw)


def _draw() -> None:
    left, right = st.columns([2, 10], vertical_alignment="bottom")
    with left.container():
        month, asked = _filters()
    by_team = data.chargeback(month, by=("team",), asked=asked)
    right.markdown(statement_close.state(by_team))
    frame.hints(by_team["hints"])
    if not by_team["rows"]:
        why = by_team["nothing_because"]
        st.info(f"{why[:1].upper()}{why[1:]}.")
        _age(by_team)
        _budgets(asked)
        return
    st.success(verdict(by_team))
    if by_team["no_money_because"]:
        st.info(f"**GPU-hours only.** No money: {by_team['no_money_because']}.")
    _tiles(by_team)
    _age(by_team)
    statement_files.downloads(by_team, asked)
    statement_tables.teams(by_team)
    statement_tables.corrections(by_team)
    statement_tables.invoice(by_team)
    statement_tables.quotas(by_team)
    _days(data.chargeback(month, by=("day", "kind"), asked=asked))
    statement_close.books(by_team)
    statement_close.reconciliation(by_team)
    statement_close.close(by_team)
    _budgets(asked)


def _budgets(asked: dict[str, str]) -> None:
    """What is burned of what each team may spend and hold; nothing where nobody set any."""
    registry, at = data.registry(), {"as_of": asked.get("as_of", "")}
    for title, budgets in (("Budgets of money", MONEY_BUDGETS), ("Budgets of GPU-hours", BUDGETS)):
        metric_table.show(registry, title, budgets, by=("team",), apart=("period",), asked=at)
    report_tables.show(registry, "budgets", "budgets", at)


def _filters() -> tuple[str, dict[str, str]]:
    as_of = filters.from_url("as_of") or data.sources()["as_of"]
    known = months_until(text.parse_instant(as_of))
    chosen = filters.fixed("Month", "month", {"": "this month", **{label: label for label in known[1:]}})
    return chosen or CURRENT, filters.asked()


def months_until(at: datetime) -> list[str]:
    """
    The month of an instant and those before it, newest first.

    >>> months_until(datetime(2026, 2, 3))[:3]
    ['2026-02', '2026-01', '2025-12']
    """
    whole = at.year * 12 + at.month - 1
    return [f"{past // 12:04d}-{past % 12 + 1:02d}" for past in range(whole, whole - MONTHS_OFFERED, -1)]


def verdict(statement: dict[str, Json]) -> str:
    """
    The month in a sentence: what it came to, whose the largest part is, and how much of it was observed.

    Args:
        statement: by team.
    """
    total, currency = statement["total"], statement["currency"]
    teams = [row for row in statement["rows"] if not row["team"].startswith("__") and row["held_gpu_hours"]]
    until = "" if statement["over"] else " so far"
    missing = coverage_words(statement["coverage"], windowed=True)
    rest = f" Not complete: {missing}." if missing else ""
    came_to = f"{amount(total['effective_cost'])} {currency}; " if currency else ""
    held = f"{hours(total['held_gpu_hours'])} GPU-hours were held"
    sentence = f"{statement['month']}{until}: {came_to}{held}"
    if not teams:
        return f"{sentence} by no team.{rest}"
    biggest = max(teams, key=lambda row: (row["held_gpu_hours"], row["team"]))
    whole = total["held_gpu_hours"]
    share = f" ({text.share(biggest['held_gpu_hours'] / whole)})" if whole else ""
    most = f"most by {biggest['team']}: {hours(biggest['held_gpu_hours'])} GPU-hours{share}"
    return f"{sentence}, {most}.{rest}"


def _tiles(statement: dict[str, Json]) -> None:
    total, currency = statement["total"], statement["currency"]
    tiles = st.columns(5)
    no_money, no_cause = statement["no_money_because"], statement["no_causes_because"]
    parts = (
        ("Effective cost", amount(total["effective_cost"]), currency, HELP["effective"], no_money),
        ("Held", hours(total["held_gpu_hours"]), "GPU-hours", HELP["held"], None),
        (
            "Useful",
            hours(total["useful_gpu_hours"], at_least=total["causes_lower_bound"]),
            "GPU-hours",
            HELP["useful"],
            no_cause or (None if total["useful_gpu_hours"] is not None else NO_ACTIVITY),
        ),
        (
            "Per useful GPU-hour",
            ("≤ " if total["unit_cost_upper_bound"] else "") + amount(total["unit_cost"]),
            currency,
            HELP["unit"],
            no_money or no_cause or (None if total["unit_cost"] is not None else "nothing useful is known"),
        ),
        (
            "Unused commitment",
            hours(statement["unused_commitment_gpu_hours"]),
            "GPU-hours",
            HELP["commitment"],
            statement["no_commitment_because"],
        ),
    )
    for where, (label, shown, unit, meaning, because) in zip(tiles, parts, strict=True):
        where.metric(
            f"{label}, {unit}" if unit else label,
            shown,
            help=f"Not defined: {because}\n\n{meaning}" if because else meaning,
            border=True,
            height="stretch",
        )


def _days(statement: dict[str, Json]) -> None:
    found = {(row["day"], row["kind"]): row["gpu_hours"] for row in statement["rows"] if row["gpu_hours"]}
    if not found:
        return
    st.subheader(f"GPU-hours by day, days of {statement['zone']}", anchor=False)
    st.plotly_chart(
        charts.day_bars(found, "GPU-hours"),
        config=charts.CONFIG,
        alt="GPU-hours of each day: held, idle and unavailable, stacked",
    )


def _age(statement: dict[str, Json]) -> None:
    over = text.instant(text.parse_instant(statement["start_at"]))
    until = text.instant(text.parse_instant(statement["end_at"]))
    age = text.age(text.parse_instant(statement["as_of"]), data.now())
    month = f"the month of {statement['zone']}, {over} to {until}"
    st.caption(f"{month} · {statement['billing']} · {age}")


if __name__ == "__main__":
    main()
