"""Until when anything of a workload counts: what tells questions about now which rows they may step over."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from domain.workload import State

OPEN_UNTIL: Final = "open_until_ms"
FOREVER: Final = 2**63 - 1

# Columns of instants by table. Where the first of them is null, something goes on; nothing does in the state
# `ended`, whose span has no end. A run of a container ends with its pod's holding at the latest.
_ENDS: Final = {
    "workload": ("ended_ms", "submitted_ms", "first_placed_ms", "first_running_ms"),
    "span": ("end_ms", "start_ms"),
    "attempt": ("end_ms", "start_ms"),
    "holding": ("released_ms", "bound_ms", "started_ms", "cut_known_ms"),
    "eviction": ("at_ms",),
    "member_wait": ("end_ms", "start_ms"),
    "reservation": ("end_ms", "start_ms"),
    "quota_use": ("end_ms", "start_ms"),
}


def open_until(tables: Mapping[str, pa.Table]) -> dict[str, int]:
    """
    The instant by workload, milliseconds: the latest end of anything that these rows say of it.

    The largest bigint where something has no end, or there is no row in `workload`. All that is in force at
    an instant, or in a window, is of workloads whose instant is no earlier than that, or than its start.

    Args:
        tables: rows by table; workload_uid str, and the columns of instants as ints.
    """
    known = set(tables["workload"]["workload_uid"].to_pylist()) if "workload" in tables else set()
    latest: dict[str, int] = {}
    for name, columns in _ENDS.items():
        rows = tables.get(name)
        if rows is None or not rows.num_rows:
            continue
        if name == "span":
            rows = rows.filter(pc.not_equal(rows["state"], str(State.ENDED)))
        first = pc.fill_null(rows[columns[0]], FOREVER)
        ends = pc.max_element_wise(first, *(rows[column] for column in columns[1:]))
        for uid, end_ms in zip(rows["workload_uid"].to_pylist(), ends.to_pylist(), strict=True):
            if end_ms > latest.get(uid, -1):
                latest[uid] = end_ms
    return {uid: end_ms if uid in known else FOREVER for uid, end_ms in latest.items()}


def stamped(rows: pa.Table, until_ms: Mapping[str, int]) -> pa.Table:
    """The rows with the instant of their workload in the last column, in its order."""
    column = pa.array(
        [until_ms.get(uid, FOREVER) for uid in rows["workload_uid"].to_pylist()],
        pa.int64(),
    )
    # Arrow's sort is stable; rows of one instant stay as they came.
    return rows.append_column(OPEN_UNTIL, column).sort_by(OPEN_UNTIL)
