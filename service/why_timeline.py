"""For what a workload has waited so far: its reasons in order of time, and the time of each."""

from collections.abc import Mapping
from typing import Any, Final

from api.answers import Record
from domain.window import MS_PER_HOUR, format_instant
from store.embedded import Store

# One row per piece of time in which the workload did not run, in order.
_PIECES: Final = """
with mine as (
    select * from workload_span where cluster = $cluster and workload_uid = $uid
)

select state, waits, reason, source, blocker, start_ms, end_ms
from reason_pieces('mine', $since_ms, $as_of_ms)
order by start_ms
"""


def reasons(store: Store, cluster: str, uid: str, *, since_ms: int, as_of_ms: int) -> Record:
    """
    The primary reasons of a workload up to an instant.

    Returns:
        `timeline`: stretches with one reason each, without a hole but for the time in which it ran; `waits`
        tells whether the time counts as waiting. `hours_by_reason`: of the waiting, the longest first.
    """
    asked = {"cluster": cluster, "uid": uid, "since_ms": since_ms, "as_of_ms": as_of_ms}
    timeline: list[dict[str, Any]] = []
    waited: dict[str, int] = {}
    for row in store.rows(_PIECES, asked):
        piece: Mapping[str, Any] = row
        if piece["waits"]:
            reason = piece["reason"]
            waited[reason] = waited.get(reason, 0) + piece["end_ms"] - piece["start_ms"]
        if timeline and _goes_on(timeline[-1], piece):
            timeline[-1]["end_ms"] = piece["end_ms"]
        else:
            timeline.append(dict(piece))
    return {
        "timeline": [
            {
                "reason": one["reason"],
                "blocker": one["blocker"],
                "source": one["source"],
                "waits": one["waits"],
                "start_at": format_instant(one["start_ms"]),
                "end_at": format_instant(one["end_ms"]),
            }
            for one in timeline
        ],
        "hours_by_reason": [
            {"reason": reason, "hours": waited_ms / MS_PER_HOUR}
            for reason, waited_ms in sorted(waited.items(), key=lambda one: (-one[1], one[0]))
        ],
    }


def _goes_on(last: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    return last["end_ms"] == piece["start_ms"] and all(
        last[name] == piece[name] for name in ("reason", "blocker", "waits")
    )
