"""What happened to GPUs, in words and as a table."""

import streamlit as st

from dashboard.shared import filters, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.tables import Cell, Column

_SHOWN = 50
_COLUMNS = (
    Column(key="at", title="Seen, UTC", number=True),
    Column(key="node", title="Node"),
    Column(key="device", title="GPU"),
    Column(key="what", title="What happened"),
    Column(key="workload", title="On it was", help="Empty where nobody was, or you may not see who."),
)


def sentence(fault: dict[str, Json]) -> str:
    """
    What happened, without when and where.

    >>> sentence({"kind": "xid", "xid": 79, "words": "GPU has fallen off the bus"})
    'XID 79, GPU has fallen off the bus'
    """
    if fault["kind"] == "xid":
        return f"XID {fault['xid']}" + (f", {fault['words']}" if fault["words"] else "")
    if fault["kind"] == "driver":
        return f"driver {fault['words']} from here on"
    return "a row could not be remapped: replace the card"


def show(faults: list[dict[str, Json]]) -> None:
    """A table of them; nothing where there are none."""
    if not faults:
        return
    st.subheader(f"Faults of GPUs: {len(faults):,}", anchor=False)
    tables.show(_COLUMNS, [_row(fault) for fault in faults[:_SHOWN]], caption="faults of GPUs")
    if len(faults) > _SHOWN:
        st.caption(f"The newest {_SHOWN} of {len(faults):,}.")


def _row(fault: dict[str, Json]) -> dict[str, Cell | str]:
    name = f"{fault['namespace']}/{fault['workload']}" if fault["workload"] else ""
    uid = fault["workload_uid"]
    return {
        "at": text.instant(text.parse_instant(fault["at"]))
        + ("" if fault["at_earliest"] else " or before anybody looked"),
        "node": fault["node"],
        "device": fault["device"] or "all of the node",
        "what": sentence(fault),
        "workload": Cell(shown=name, href=filters.link("job", uid=uid) if uid else ""),
    }
