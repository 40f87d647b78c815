"""Sources: how far each was read, and what could not be read."""

import streamlit as st

from dashboard.shared import data, filters, frame, tables
from dashboard.shared import format as text
from dashboard.shared.causes import explained
from dashboard.shared.data import Json
from dashboard.shared.tables import Cell, Column

LEAD = "Where the figures come from. A figure is as fresh as its slowest source."
SOURCES = "One per cluster and kind of object, and one per source of GPU metrics."
COLUMNS = (
    Column(key="cluster", title="Cluster"),
    Column(key="kind", title="Kind"),
    Column(key="source", title="Source", help="Which one, where a kind comes from several."),
    Column(key="state", title="State"),
    Column(key="lag", title="Lag", help="How long ago the source was last known good.", number=True),
    Column(key="seen", title="Last read", help="In UTC.", number=True),
    Column(
        key="epoch",
        title="Epoch",
        help="Counts how often the cluster began anew: restored from a backup, or made again.",
        number=True,
    ),
    Column(key="restarts", title="Restarts", help="How often the watch had to start over.", number=True),
    Column(
        key="set_aside",
        title="Set aside",
        help="Objects that could not be read; each is counted and none stops the others.",
        number=True,
    ),
    Column(key="error", title="Last error"),
)


STATES = {
    "read": "read in time",
    "never_read": "not yet read",
    "not_installed": "not in this cluster",
    "set_aside_only": "not a source; only set aside",
}
CAUSE_COLUMNS = (
    Column(key="source", title="Source"),
    Column(key="count", title="How many", number=True),
    Column(key="plainly", title="What is wrong with them"),
    Column(key="remedy", title="What to do"),
    Column(key="because", title="In the machine's words"),
)


def main() -> None:
    """Draw the page."""
    frame.page("Sources", LEAD, _draw)


def _draw() -> None:
    reply = data.sources(as_of=filters.from_url("as_of"))
    rows = reply["rows"]
    if not rows:
        st.info(
            "No source has been read yet. Import a recording with `gpuledger import k8s FOLDER`, "
            "or point `gpuledger serve` to a cluster."
        )
        return
    stale = sum(bool(row["stale"]) for row in rows)
    aside = sum(row["set_aside"] for row in rows)
    tiles = st.columns(4)
    tiles[0].metric("Sources", f"{len(rows):,}", help=SOURCES, border=True)
    tiles[1].metric("Stale", f"{stale:,}", help="Not read in time.", border=True)
    tiles[2].metric("Worst lag", _worst_lag(rows), border=True)
    tiles[3].metric("Objects set aside", f"{aside:,}", border=True)
    tables.show(COLUMNS, [_row(row) for row in rows], caption="sources")
    _set_aside(rows)
    if reply["as_of"]:
        st.caption(text.age(text.parse_instant(reply["as_of"]), data.now()))


def _worst_lag(rows: list[dict[str, Json]]) -> str:
    return text.duration(max(row["lag_seconds"] or 0 for row in rows))


def _state(row: dict[str, Json]) -> Cell | str:
    if row["stale"]:
        return Cell(shown="stale", bad=True)
    return STATES[row["state"]]


def _set_aside(rows: list[dict[str, Json]]) -> None:
    causes = [(row, cause) for row in rows for cause in row["set_aside_causes"]]
    if not causes:
        return
    st.subheader("What was set aside, and why", anchor=False)
    st.caption("Each is counted, a sample is kept, and everything else was read.")
    tables.show(CAUSE_COLUMNS, [_cause(row, cause) for row, cause in causes], caption="causes")


def _cause(source: dict[str, Json], cause: dict[str, Json]) -> dict[str, Cell | str]:
    plain = explained(cause["because"])
    return {
        "source": f"{source['source'] or source['kind']} of {source['cluster']}",
        "count": f"{cause['count']:,}",
        "plainly": plain.plainly,
        "remedy": plain.remedy,
        "because": cause["because"],
    }


def _row(row: dict[str, Json]) -> dict[str, Cell | str]:
    return {
        "cluster": row["cluster"],
        "kind": row["kind"],
        "source": row["source"],
        "state": _state(row),
        "lag": text.duration(row["lag_seconds"]),
        "seen": text.instant(text.parse_instant(row["seen_at"])) if row["seen_at"] else "not yet",
        "epoch": str(row["epoch"]),
        "restarts": f"{row['restarts']:,}",
        "set_aside": Cell(shown=f"{row['set_aside']:,}", bad=row["set_aside"] > 0),
        "error": row["last_error"],
    }


if __name__ == "__main__":
    main()
