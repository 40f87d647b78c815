"""Alerts: what fires now and what that rests on, what is about to, what fired, and what to do about it."""

import streamlit as st

from dashboard.shared import data, filters, frame, runbooks, tables, verdict
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.tables import Cell, Column

LEAD = (
    "What is beyond its limit for long enough to wake somebody. Evaluated here at each measurement, whoever"
    " else does so."
)
COLUMNS = (
    Column(key="severity", title="Severity"),
    Column(key="alert", title="Alert"),
    Column(key="what", title="What"),
    Column(key="value", title="Value", help="The last one beyond the limit.", number=True),
    Column(key="limit", title="Limit", number=True),
    Column(
        key="since",
        title="Since",
        help="How long it has been beyond the limit; of recorded data, as far as it was looked at.",
        number=True,
    ),
    Column(key="metric", title="Rests on", help="The metric, and how much of it was observed."),
)
PENDING = tuple(column for column in COLUMNS if column.key != "severity")
HISTORY = (
    Column(key="alert", title="Alert"),
    Column(key="what", title="What", help="As it was told when it began to fire."),
    Column(key="worst", title="Worst", help="The value farthest beyond the limit.", number=True),
    Column(key="limit", title="Limit", number=True),
    Column(key="fired", title="Fired", help="In UTC.", number=True),
    Column(key="lasted", title="For", number=True),
    Column(key="metric", title="Rests on", help="The metric, and how much of it was observed."),
)
HISTORY_SHOWN = 200
STATES = ("firing", "pending", "resolved")


def main() -> None:
    """Draw the page."""
    # An alert may say that the API is dead: what to do then stands there all the same.
    frame.page("Alerts", LEAD, _draw, first=_asked_runbook)


def _asked_runbook() -> None:
    """The runbook that a link of an alert asks for, opened, whether or not that alert is listed."""
    asked = filters.from_url("runbook")
    if not asked:
        return
    if told := runbooks.text_of(asked):
        with st.expander(f"What to do about {asked}", expanded=True):
            st.markdown(told)
    else:
        st.warning(f"**No such runbook.** No alert of gpuledger is called {text.literal(asked)}.")


def _draw() -> None:
    first, second = st.columns(2)
    with first:
        window = filters.fixed("History", "window", filters.WINDOWS, help_text="What fired how long ago.")
    with second:
        frame.auto_refresh()
    reply = data.get("alerts", filters.asked(window=window))
    rows = reply["rows"]
    of = {state: [row for row in rows if row["state"] == state] for state in STATES}
    if reply["hints"]:
        frame.hints(reply["hints"])
    else:
        sentence = verdict.of_alerts(of["firing"], of["pending"])
        (st.warning if of["firing"] else st.success)(sentence)
    st.caption(text.age(text.parse_instant(reply["as_of"]), data.now()))
    as_of = reply["as_of"]
    for state, heading, columns in (
        ("firing", "Firing", COLUMNS),
        ("pending", "Pending: beyond the limit, and not yet for long enough", PENDING),
    ):
        if of[state]:
            st.subheader(heading, anchor=state)
            tables.show(columns, [_row(row, as_of) for row in of[state]], caption=f"alerts, {state}")
    _history(of["resolved"], filters.WINDOWS.get(window, f"last {window}"))
    _what_to_do([row["alert"] for row in rows])


def _history(resolved: list[dict[str, Json]], window: str) -> None:
    st.subheader(f"Resolved, {window}", anchor="resolved")
    if not resolved:
        st.caption("None.")
        return
    tables.show(HISTORY, [_past(row) for row in resolved[:HISTORY_SHOWN]], caption="alerts, resolved")
    if len(resolved) > HISTORY_SHOWN:
        st.caption(f"The newest {HISTORY_SHOWN} of {len(resolved):,}.")


def _what_to_do(names: list[str]) -> None:
    known = [(name, told) for name in dict.fromkeys(names) if (told := runbooks.text_of(name))]
    if known:
        st.subheader("What to do", anchor="runbooks")
    for name, told in known:
        with st.expander(name):
            st.markdown(told)


def _row(row: dict[str, Json], as_of: str) -> dict[str, Cell | str]:
    critical = row["severity"] == "critical"
    return _of_both(row) | {
        "severity": Cell(shown=row["severity"], bad=critical),
        "value": Cell(shown=_amount(row, "value"), note=_heard(row)),
        "since": _length(row["active_at"], as_of),
    }


def _past(row: dict[str, Json]) -> dict[str, Cell | str]:
    return _of_both(row) | {
        "worst": _amount(row, "worst_value"),
        "fired": text.instant(text.parse_instant(row["fired_at"])),
        "lasted": _length(row["fired_at"], row["resolved_at"]),
    }


def _of_both(row: dict[str, Json]) -> dict[str, Cell | str]:
    return {
        "alert": Cell(shown=row["alert"], note=row["description"], href=_runbook(row)),
        "what": Cell(shown=row["summary"] + _remark(row), href=page_of(row["dashboard_url"])),
        "limit": _amount(row, "threshold"),
        "metric": _rests_on(row),
    }


def page_of(address: str) -> str:
    """
    An alert's link as one of ours, relative, so that it holds behind any base path.

    >>> page_of("https://gpu.example.org/tools/fair/queues?queue=a+b")
    'queues?queue=a+b'
    """
    return address.rpartition("/")[2]


def _runbook(row: dict[str, Json]) -> str:
    address = row["runbook_url"]
    if page_of(address).startswith("alerts?runbook="):
        return page_of(address)
    return address if address.startswith(("https://", "http://")) else ""


def _remark(row: dict[str, Json]) -> str:
    if row["because"]:
        return f" (no data: {row['because']})"
    if row["inhibited_by"]:
        return f" (not told while {row['inhibited_by']} fires for the same)"
    return " (calm since, and about to resolve)" if row["fine_since"] and row["state"] == "firing" else ""


def _rests_on(row: dict[str, Json]) -> Cell | str:
    if not row["metric"]:
        return "gpuledger itself"
    observed = "" if row["coverage"] is None else f", {text.quantity(row['coverage'], 'ratio')} observed"
    return f"{row['metric']}{observed}"


def _heard(row: dict[str, Json]) -> str:
    return f"heard last {text.instant(text.parse_instant(row['value_at']))}" if row["value_at"] else ""


def _amount(row: dict[str, Json], name: str) -> str:
    return text.quantity(row[name], row["unit"])


def _length(start: str, end: str) -> str:
    return text.duration((text.parse_instant(end) - text.parse_instant(start)).total_seconds())


if __name__ == "__main__":
    main()
