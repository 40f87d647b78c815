"""Chargeback: what a month cost, by team, and whether the books close."""

from datetime import datetime
from decimal import Decimal
from functools import partial

import streamlit as st

from dashboard.shared import charts, data, filters, frame, metric_table, report_tables, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.metric_table import Shown
from dashboard.shared.statement_words import COMMON, HELP, KINDS, NO_ACTIVITY, NOTES, ROUNDED
from dashboard.shared.tables import Cell, Column
from domain.observed import coverage_words

# Less is written as 0.0.
_LEAST_HOURS = 0.05
LEAD = "Who held which GPU-hours in a month, what they were good for, and what they cost."
CURRENT = "current"
MONTHS_OFFERED = 13
UNKNOWN_SHOWN = 20
UNKNOWN_COLUMNS = (
    Column(key="node", title="Node"),
    Column(key="from", title="From"),
    Column(key="to", title="To"),
    Column(key="because", title="What is not known"),
)
BUDGETS = (
    Shown(metric="budget_gpu_hours", title="Budget"),
    Shown(metric="budget_burned_gpu_hours", title="Burned"),
    Shown(metric="budget_burned_ratio", title="Of the budget"),
    Shown(metric="budget_forecast_ratio", title="At the end, as it goes"),
)
BOUNDED = frozenset({"useful_gpu_hours", "not_useful_gpu_hours"})


def main() -> None:
    """Draw the page."""
    frame.page("Chargeback", LEAD, _draw)


def _draw() -> None:
    month, asked = _filters()
    by_team = data.chargeback(month, by=("team",), asked=asked)
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
    _teams(by_team)
    _invoice(by_team)
    _quotas(by_team)
    _days(data.chargeback(month, by=("day", "kind"), asked=asked))
    _books(by_team)
    _budgets(asked)
    _download(by_team, asked)


def _budgets(asked: dict[str, str]) -> None:
    """What is burned of the GPU-hours that each team may have; nothing where nobody set any."""
    registry, at = data.registry(), {"as_of": asked.get("as_of", "")}
    metric_table.show(registry, "Budgets of GPU-hours", BUDGETS, by=("team",), apart=("period",), asked=at)
    report_tables.show(registry, "budgets", "budgets of GPU-hours", at)


def _filters() -> tuple[str, dict[str, str]]:
    as_of = filters.from_url("as_of") or data.sources()["as_of"]
    known = months_until(text.parse_instant(as_of))
    month = st.columns([2, 10])[0].container()
    with month:
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
    came_to = f"{_amount(total['effective_cost'])} {currency}; " if currency else ""
    held = f"{_hours(total['held_gpu_hours'])} GPU-hours were held"
    sentence = f"{statement['month']}{until}: {came_to}{held}"
    if not teams:
        return f"{sentence} by no team.{rest}"
    biggest = max(teams, key=lambda row: (row["held_gpu_hours"], row["team"]))
    whole = total["held_gpu_hours"]
    share = f" ({text.share(biggest['held_gpu_hours'] / whole)})" if whole else ""
    return (
        f"{sentence}, most by {biggest['team']}: {_hours(biggest['held_gpu_hours'])} GPU-hours{share}.{rest}"
    )


def _tiles(statement: dict[str, Json]) -> None:
    total, currency = statement["total"], statement["currency"]
    tiles = st.columns(5)
    no_money, no_cause = statement["no_money_because"], statement["no_causes_because"]
    parts = (
        ("Effective cost", _amount(total["effective_cost"]), currency, HELP["effective"], no_money),
        ("Held", _hours(total["held_gpu_hours"]), "GPU-hours", HELP["held"], None),
        (
            "Useful",
            _hours(total["useful_gpu_hours"], at_least=total["causes_lower_bound"]),
            "GPU-hours",
            HELP["useful"],
            no_cause or (None if total["useful_gpu_hours"] is not None else NO_ACTIVITY),
        ),
        (
            "Per useful GPU-hour",
            ("≤ " if total["unit_cost_upper_bound"] else "") + _amount(total["unit_cost"]),
            currency,
            HELP["unit"],
            no_money or no_cause or (None if total["unit_cost"] is not None else "nothing useful is known"),
        ),
        (
            "Unused commitment",
            _hours(statement["unused_commitment_gpu_hours"]),
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


def _teams(statement: dict[str, Json]) -> None:
    currency, causes = statement["currency"], not statement["no_causes_because"]
    centres = any("cost_centre" in row for row in statement["rows"])
    no_cause = statement["no_causes_because"] or ""
    columns = [
        Column(key="team", title="Team"),
        *([Column(key="centre", title="Cost centre")] if centres else []),
        Column(key="all", title="GPU-h", help=HELP["all"], number=True),
        Column(key="held", title="Held, GPU-h", help=HELP["held"], number=True),
        Column(key="useful", title="Useful, GPU-h", help=no_cause or HELP["useful"], number=True),
        Column(key="not_useful", title="Not useful, GPU-h", help=no_cause or HELP["not_useful"], number=True),
        *(
            [Column(key="unattributed", title="No cause, GPU-h", help=HELP["unattributed"], number=True)]
            if causes and statement["total"]["unattributed_gpu_hours"]
            else []
        ),
        *(
            [Column(key="loss_adjustment", title="Adjusted, GPU-h", help=HELP["adjusted"], number=True)]
            if statement["total"]["loss_adjustment_gpu_hours"]
            else []
        ),
        *(
            [
                Column(key="list", title=f"List, {currency}", help=HELP["list"], number=True),
                Column(key="effective", title=f"Effective, {currency}", help=HELP["effective"], number=True),
                Column(key="billed", title=f"Billed, {currency}", help=HELP["billed"], number=True),
            ]
            if currency
            else []
        ),
    ]
    whole = [{"team": "All", **statement["total"]}]
    # Who only has quota is charged nothing, and stands with what was lent and borrowed.
    charged = [row for row in statement["rows"] if row["gpu_hours"] or row["loss_adjustment_gpu_hours"]]
    charged.sort(key=lambda row: row["team"] in COMMON)
    st.subheader(f"Teams, {statement['month']}", anchor=False)
    tables.show(columns, [_row(row, no_cause) for row in [*charged, *whole]], caption="teams and their cost")


def _invoice(statement: dict[str, Json]) -> None:
    """The kinds of lines and their sum: that is the whole bill, to the cent."""
    currency = statement["currency"]
    told = [row for row in statement["by_kind"] if row["gpu_hours"] or row["loss_adjustment_gpu_hours"]]
    columns = [
        Column(key="what", title="Lines"),
        Column(key="hours", title="GPU-h", number=True, help=HELP["all"]),
        Column(key="useful", title="Useful, GPU-h", number=True, help=HELP["useful"]),
        Column(key="not_useful", title="Not useful, GPU-h", number=True, help=HELP["not_useful"]),
    ]
    if currency:
        columns += [
            Column(key="effective", title=f"Effective, {currency}", help=HELP["effective"], number=True),
            Column(key="billed", title=f"Billed, {currency}", help=HELP["billed"], number=True),
        ]

    def line(what: str, row: dict[str, Json], *, caused: bool) -> dict[str, Cell | str]:
        bound = row["causes_lower_bound"]
        return {
            "what": what,
            "hours": _hours(row["gpu_hours"]),
            "useful": _hours(row["useful_gpu_hours"], at_least=bound) if caused else "",
            "not_useful": _hours(row["not_useful_gpu_hours"], at_least=bound) if caused else "",
            **{name: _amount(row[f"{name}_cost"]) for name in ("effective", "billed")},
        }

    order = list(KINDS)
    told.sort(key=lambda row: order.index(row["kind"]) if row["kind"] in order else len(order))
    lines = [
        line(
            KINDS.get(row["kind"], text.words(row["kind"])),
            row,
            caused=row["kind"] in {"held", "loss_adjustment"},
        )
        for row in told
    ]
    st.subheader("From the lines to the invoice", anchor=False)
    tables.show(
        columns,
        [*lines, line("= the invoice", statement["total"], caused=True)],
        caption="the invoice by kind",
    )
    if currency:
        st.caption(ROUNDED)


def _quotas(statement: dict[str, Json]) -> None:
    """What each team lent, borrowed and left unused, and whether lent is what was borrowed."""
    st.subheader("Quota lent, borrowed and left unused", anchor=False)
    rows = [row for row in statement["rows"] if row["lent_gpu_hours"] is not None]
    if not rows:
        st.caption(f"Not known: {statement['no_commitment_because']}.")
        return
    currency = statement["currency"]
    columns = [Column(key="team", title="Team")]
    for name, title in NOTES:
        meaning = HELP["commitment" if name == "unused_commitment" else name]
        columns.append(Column(key=name, title=f"{title}, GPU-h", number=True, help=meaning))
        if currency:
            worth = f"{title}, worth {currency}"
            columns.append(Column(key=f"{name}_cost", title=worth, number=True, help=HELP["worth"]))
    tables.show(
        columns,
        [
            {"team": COMMON.get(row["team"], row["team"])}
            | {name: _hours(row[f"{name}_gpu_hours"]) for name, _ in NOTES}
            | {f"{name}_cost": _amount(row[f"{name}_cost"]) for name, _ in NOTES}
            for row in [*rows, {"team": "All", **statement["total"]}]
        ],
        caption="quota lent, borrowed and left unused",
    )
    from_nobody = statement["from_unassigned_gpu_hours"]
    if from_nobody is not None:
        total = statement["total"]
        st.caption(
            f"Lent {_hours(total['lent_gpu_hours'])} = borrowed {_hours(total['borrowed_gpu_hours'])} -"
            f" {_hours(from_nobody)} GPU-hours that came from no holder's quota."
        )


def _row(row: dict[str, Json], no_cause: str) -> dict[str, Cell | str]:
    team = str(row["team"])

    def hours(name: str) -> Cell:
        value = row[name]
        bound = row["causes_lower_bound"] and name in BOUNDED
        note = (no_cause or NO_ACTIVITY) if value is None else ""
        return Cell(shown=_hours(value, at_least=bound), note=note)

    return {
        "team": Cell(
            shown=COMMON.get(team, team),
            href="" if team in COMMON or team == "All" else filters.link("jobs", team=team),
        ),
        "centre": row.get("cost_centre") or "",
        "all": hours("gpu_hours"),
        **{
            name: hours(f"{name}_gpu_hours")
            for name in ("held", "useful", "not_useful", "unattributed", "loss_adjustment")
        },
        **{name: _amount(row[f"{name}_cost"]) for name in ("list", "effective", "billed")},
    }


def _days(statement: dict[str, Json]) -> None:
    hours = {(row["day"], row["kind"]): row["gpu_hours"] for row in statement["rows"] if row["gpu_hours"]}
    if not hours:
        return
    st.subheader(f"GPU-hours by day, days of {statement['zone']}", anchor=False)
    st.plotly_chart(
        charts.day_bars(hours, "GPU-hours"),
        config=charts.CONFIG,
        alt="GPU-hours of each day: held, idle and unavailable, stacked",
    )


def _books(statement: dict[str, Json]) -> None:
    st.subheader("Do the books close?", anchor=False)
    books = statement["books"]
    if books is None:
        st.caption("The books close over whole clusters; you see the lines of your teams.")
        return
    part = {name.removesuffix("_gpu_hours"): _hours(value) for name, value in books.items()}
    st.markdown(
        f"Capacity {part['capacity']} = held {part['held']} + idle {part['idle']} + unavailable"
        f" {part['unavailable']} - overlap {part['overlap']} GPU-hours; difference {part['difference']}."
    )
    unknown = statement["unknown"]
    if not unknown:
        return
    st.warning(
        f"{text.count(len(unknown), 'stretch', 'stretches')} on nodes are not known: there the figures are "
        "lower bounds, and capacity counts as what was held."
    )
    tables.show(
        UNKNOWN_COLUMNS,
        [
            {
                "node": f"{each['cluster']}/{each['node']}",
                "from": text.instant(text.parse_instant(each["start_at"])),
                "to": text.instant(text.parse_instant(each["end_at"])),
                "because": each["because"],
            }
            for each in unknown[:UNKNOWN_SHOWN]
        ],
        caption="what is not known",
    )
    if len(unknown) > UNKNOWN_SHOWN:
        st.caption(f"The first {UNKNOWN_SHOWN} of {len(unknown):,}; the API gives all.")


def _download(statement: dict[str, Json], asked: dict[str, str]) -> None:
    month = statement["month"]
    st.download_button(
        "Download every line as CSV",
        partial(data.download, f"chargeback/{month}", asked, data.viewer()),
        file_name=f"chargeback-{month}.csv",
        mime="text/csv",
        help="A line per team, project, user, queue, model and day.",
    )


def _age(statement: dict[str, Json]) -> None:
    over = text.instant(text.parse_instant(statement["start_at"]))
    until = text.instant(text.parse_instant(statement["end_at"]))
    age = text.age(text.parse_instant(statement["as_of"]), data.now())
    month = f"the month of {statement['zone']}, {over} to {until}"
    st.caption(f"{month} · {statement['billing']} · {age}")


def _hours(value: float | None, *, at_least: bool = False) -> str:
    if value is None:
        return text.UNDEFINED
    if at_least and value < _LEAST_HOURS:
        return "> 0" if value else text.NOT_KNOWN
    return f"{'≥ ' if at_least else ''}{value:,.1f}"


def _amount(value: str | float | None) -> str:
    """A cost as the API writes it, with all decimals of its currency; a price per hour with two."""
    if value is None:
        return text.UNDEFINED
    return f"{Decimal(value):,}" if isinstance(value, str) else f"{value:,.2f}"


if __name__ == "__main__":
    main()
