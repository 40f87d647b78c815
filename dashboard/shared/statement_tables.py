"""The tables of a statement: teams, the way to the invoice, quota, corrections of closed months."""

from decimal import Decimal
from typing import Final

import streamlit as st

from dashboard.shared import filters, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.statement_text import amount, hours
from dashboard.shared.statement_words import COMMON, CORRECTED, HELP, KINDS, NO_ACTIVITY, NOTES, ROUNDED
from dashboard.shared.tables import Cell, Column

_BOUNDED: Final = frozenset({"useful_gpu_hours", "not_useful_gpu_hours"})


def teams(statement: dict[str, Json]) -> None:
    """What each team held, what it was good for, and what it costs; lines of nobody come last."""
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
    whole = {"team": "All", **statement["total"]}
    # Who only has quota is charged nothing, and stands with what was lent and borrowed.
    charged = [row for row in statement["rows"] if _counts(row)]
    charged.sort(key=lambda row: (row["team"] in COMMON, text.natural(row["team"])))
    st.subheader(f"Teams, {statement['month']}", anchor=False)
    tables.show(
        columns,
        [_row(row, no_cause) for row in charged],
        caption="teams and their cost",
        foot=[_row(whole, no_cause)],
    )


def invoice(statement: dict[str, Json]) -> None:
    """The kinds of lines and their sum: that is the whole bill, to the cent."""
    currency = statement["currency"]
    told = [row for row in statement["by_kind"] if _counts(row)]
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
            "hours": hours(row["gpu_hours"]),
            "useful": hours(row["useful_gpu_hours"], at_least=bound) if caused else "",
            "not_useful": hours(row["not_useful_gpu_hours"], at_least=bound) if caused else "",
            **{name: amount(row[f"{name}_cost"]) for name in ("effective", "billed")},
        }

    order = list(KINDS)
    told.sort(key=lambda row: order.index(row["kind"]) if row["kind"] in order else len(order))
    lines = [
        line(
            KINDS.get(row["kind"], text.words(row["kind"])),
            row,
            caused=row["kind"] in {"held", "loss_adjustment", "correction"},
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


def quotas(statement: dict[str, Json]) -> None:
    """What each team lent, borrowed and left unused, and whether lent is what was borrowed."""
    st.subheader("Quota lent, borrowed and left unused", anchor=False)
    rows = [row for row in statement["rows"] if row["lent_gpu_hours"] is not None]
    rows.sort(key=lambda row: text.natural(row["team"]))
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
    *lines, whole = [
        {"team": COMMON.get(row["team"], row["team"])}
        | {name: hours(row[f"{name}_gpu_hours"]) for name, _ in NOTES}
        | {f"{name}_cost": amount(row[f"{name}_cost"]) for name, _ in NOTES}
        for row in [*rows, {"team": "All", **statement["total"]}]
    ]
    tables.show(columns, lines, caption="quota lent, borrowed and left unused", foot=[whole])
    from_nobody = statement["from_unassigned_gpu_hours"]
    if from_nobody is not None:
        total = statement["total"]
        st.caption(
            f"Lent {hours(total['lent_gpu_hours'])} = borrowed {hours(total['borrowed_gpu_hours'])} -"
            f" {hours(from_nobody)} GPU-hours that came from no holder's quota."
        )


def corrections(statement: dict[str, Json]) -> None:
    """What was learnt of closed months, and is booked in this one; nothing where there is none."""
    if not statement["corrections"]:
        return
    currency = statement["currency"]
    columns = [
        Column(key="month", title="Of the closed month"),
        Column(key="hours", title="GPU-h", number=True),
        Column(key="useful", title="Useful, GPU-h", number=True),
    ]
    if currency:
        columns += [
            Column(key="effective", title=f"Effective, {currency}", help=HELP["effective"], number=True),
            Column(key="billed", title=f"Billed, {currency}", help=HELP["billed"], number=True),
        ]
    st.subheader("Corrections of closed months", anchor=False)
    tables.show(
        columns,
        [
            {
                "month": Cell(
                    shown=row["of_month"], href=filters.link("chargeback", month=str(row["of_month"]))
                ),
                "hours": hours(row["correction_gpu_hours"]),
                "useful": hours(row["useful_gpu_hours"]),
                **{name: amount(row[f"{name}_cost"]) for name in ("effective", "billed")},
            }
            for row in statement["corrections"]
        ],
        caption="corrections of closed months",
    )
    st.caption(CORRECTED)


def _counts(row: dict[str, Json]) -> bool:
    """Whether there is GPU-time or money in it, or what is no longer useful."""
    costs = any(Decimal(row[f"{name}_cost"] or 0) for name in ("list", "effective", "billed"))
    return bool(row["gpu_hours"] or row["loss_adjustment_gpu_hours"] or costs)


def _row(row: dict[str, Json], no_cause: str) -> dict[str, Cell | str]:
    team = str(row["team"])

    def cell(name: str) -> Cell:
        value = row[name]
        bound = row["causes_lower_bound"] and name in _BOUNDED
        note = (no_cause or NO_ACTIVITY) if value is None else ""
        return Cell(shown=hours(value, at_least=bound), note=note)

    return {
        "team": Cell(
            shown=COMMON.get(team, team),
            href="" if team in COMMON or team == "All" else filters.link("jobs", team=team),
        ),
        "centre": row.get("cost_centre") or "",
        "all": cell("gpu_hours"),
        **{
            name: cell(f"{name}_gpu_hours")
            for name in ("held", "useful", "not_useful", "unattributed", "loss_adjustment")
        },
        **{name: amount(row[f"{name}_cost"]) for name in ("list", "effective", "billed")},
    }
