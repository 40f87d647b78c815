"""What a workload's row says that follows from its other rows, so that no question joins them again."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from domain.workload import WAITING_STATES

# The last columns of the table `workload`, after `open_until_ms`.
FOLLOWING: Final = ("first_wait_ms", "is_copy", "waits_again", "waits_in_pieces")


def completed(workloads: pa.Table, *, spans: pa.Table | None, copies: pa.Table | None) -> pa.Table:
    """
    The workloads with their last columns.

    `first_wait_ms` is the length of the waiting before the first placement, or before the end where there was
    none, null while neither has come; `is_copy`, whether it is MultiKueue's copy of one that is counted
    elsewhere; `waits_again`, whether any of its waiting comes after a placement; `waits_in_pieces`, whether
    its waiting before is not one piece that reaches from its submission to its placement, or to its end.

    Args:
        workloads: rows of the table `workload` without these columns.
        spans: rows of `span` of these workloads; None where there are none.
        copies: rows of `workload_copy` of these workloads; None where there are none.
    """
    first, later = ({}, set()) if spans is None else _waits(spans)
    copied = set() if copies is None else set(copies["workload_uid"].to_pylist())
    uids = workloads["workload_uid"].to_pylist()
    until_ms = pc.coalesce(workloads["first_placed_ms"], workloads["ended_ms"])
    waits = pa.array(
        [
            None if at_ms is None else first.get(uid, 0)
            for uid, at_ms in zip(uids, until_ms.to_pylist(), strict=True)
        ],
        pa.int64(),
    )
    is_whole = pc.equal(pc.add(workloads["submitted_ms"], waits), until_ms)
    columns = (
        waits,
        pa.array([uid in copied for uid in uids], pa.bool_()),
        pa.array([uid in later for uid in uids], pa.bool_()),
        pc.invert(pc.fill_null(is_whole, False)),  # noqa: FBT003 (a value)
    )
    for name, column in zip(FOLLOWING, columns, strict=True):
        workloads = workloads.append_column(name, column)
    return workloads


def _waits(spans: pa.Table) -> tuple[dict[str, int], set[str]]:
    """Milliseconds before the first placement by workload, and who waits after one."""
    waits = spans.filter(pc.is_in(spans["state"], pa.array([str(state) for state in WAITING_STATES])))
    first = waits.filter(pc.and_(waits["first_wait"], pc.is_valid(waits["end_ms"])))
    lengths = pa.table({"uid": first["workload_uid"], "ms": pc.subtract(first["end_ms"], first["start_ms"])})
    summed = lengths.group_by("uid").aggregate([("ms", "sum")])
    later = waits.filter(pc.invert(waits["first_wait"]))
    return (
        dict(zip(summed["uid"].to_pylist(), summed["ms_sum"].to_pylist(), strict=True)),
        set(later["workload_uid"].to_pylist()),
    )
