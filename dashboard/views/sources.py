"""Sources: how far each was read, and what could not be read."""

import streamlit as st

from dashboard.shared import data, filters, frame, metric_table, tables
from dashboard.shared import format as text
from dashboard.shared.causes import explained
from dashboard.shared.data import Json
from dashboard.shared.metric_table import Shown
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
    "not_permitted": "not permitted",
    "not_installed": "not in this cluster",
    "set_aside_only": "not a source; only set aside",
}
MISSING_COLUMNS = (
    Column(key="source", title="Source"),
    Column(key="missing", title="What cannot be told"),
    Column(key="why", title="Why"),
    Column(key="remedy", title="What to do"),
)
CAUSE_COLUMNS = (
    Column(key="source", title="Source"),
    Column(key="count", title="How many", number=True),
    Column(key="plainly", title="What is wrong with them"),
    Column(key="remedy", title="What to do"),
    Column(key="because", title="In the machine's words"),
)


KUEUE_COLUMNS = (
    Column(key="figure", title="Figure"),
    Column(key="queue", title="ClusterQueue"),
    Column(key="flavor", title="Flavor"),
    Column(key="theirs", title="Kueue", number=True),
    Column(key="ours", title="Ours", number=True),
)
SAMPLES = (
    Shown(metric="gpu_readings", title="Readings"),
    Shown(metric="activity_known_ratio", title="Activity known, of running time"),
    Shown(metric="gpu_node_lag_seconds", title="Lag of the latest node"),
    Shown(metric="late_gpu_nodes", title="Late nodes"),
)


def main() -> None:
    """Draw the page."""
    frame.page("Sources", LEAD, _draw)


def _draw() -> None:
    reply = data.sources(as_of=filters.from_url("as_of"))
    # A gap is no source: it is shown among what is missing only.
    rows = [row for row in reply["rows"] if row["kind"] != "gap"]
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
    _missing(reply["rows"])
    tables.show(COLUMNS, [_row(row) for row in rows], caption="sources")
    _set_aside(rows)
    _kueue(data.kueue_checks())
    metric_table.show(
        data.registry(),
        "GPU metrics",
        SAMPLES,
        by=("cluster", "gpu_model"),
        asked={"as_of": filters.from_url("as_of")},
    )
    if reply["as_of"]:
        st.caption(text.age(text.parse_instant(reply["as_of"]), data.now()))


def _worst_lag(rows: list[dict[str, Json]]) -> str:
    return text.duration(max(row["lag_seconds"] or 0 for row in rows))


def _state(row: dict[str, Json]) -> Cell | str:
    if row["state"] == "not_permitted":
        return Cell(shown=STATES["not_permitted"], bad=True)
    if row["stale"]:
        return Cell(shown="stale", bad=True)
    return STATES[row["state"]]


def _missing(rows: list[dict[str, Json]]) -> None:
    lacking = [row for row in rows if row["missing"]]
    if not lacking:
        return
    st.subheader("What is missing, and why", anchor=False)
    st.caption("Everything else was read, and goes on.")
    tables.show(MISSING_COLUMNS, [_lack(row) for row in lacking], caption="missing")


def _lack(row: dict[str, Json]) -> dict[str, Cell | str]:
    state = _state(row)
    return {
        "source": (row["source"] or row["kind"]) + (f" of {row['cluster']}" if row["cluster"] else ""),
        "missing": row["missing"],
        "why": row["last_error"] or (state.shown if isinstance(state, Cell) else state),
        "remedy": row["remedy"],
    }


def _set_aside(rows: list[dict[str, Json]]) -> None:
    causes = [(row, cause) for row in rows for cause in row["set_aside_causes"]]
    if not causes:
        return
    st.subheader("What was set aside, and why", anchor=False)
    st.caption("Each is counted, a sample is kept, and everything else was read.")
    tables.show(CAUSE_COLUMNS, [_cause(row, cause) for row, cause in causes], caption="causes")


def _kueue(rows: list[dict[str, Json]]) -> None:
    if not rows:
        return
    apart = sum(row["differs"] for row in rows)
    st.subheader("What Kueue says of its queues, beside ours", anchor=False)
    st.caption(
        f"{text.count(apart, 'figure')} lie apart by more than is tolerated. Nothing that Kueue says becomes"
        " part of ours; its waits are by another clock and are not judged."
    )
    for source, error in sorted({(row["source"], row["error"]) for row in rows if row["error"]}):
        st.warning(f"{source}: {error}")
    shown = [_compared(row) for row in rows if row["figure"]]
    if shown:
        tables.show(KUEUE_COLUMNS, shown, caption="Kueue's figures beside ours")


def _compared(row: dict[str, Json]) -> dict[str, Cell | str]:
    theirs, ours = row["theirs"], row["ours"]
    return {
        "figure": row["figure"],
        "queue": row["queue"],
        "flavor": row["flavor"],
        "theirs": text.UNDEFINED if theirs is None else f"{theirs:,.4g}",
        "ours": Cell(shown=text.UNDEFINED if ours is None else f"{ours:,.4g}", bad=row["differs"]),
    }


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
