"""For what a workload has waited so far: its reasons in order of time, and the time of each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from analytics.why.pieces import Piece, Spent, pieces
from analytics.why.timeline import Stretch
from api.answers import Record
from domain.window import MS_PER_HOUR, format_instant
from domain.workload import State
from service.why_facts import Known
from store.embedded import Store

# One row per stretch of looks that found the same of it, in order.
_LOOKS: Final = """
select workload_uid as uid, reason, source, blocker, start_ms, end_ms
from wait_reason
where cluster = $cluster and workload_uid = $uid and start_ms < $as_of_ms and end_ms > $since_ms
order by start_ms
"""


def reasons(store: Store, cluster: str, known: Known, as_of_ms: int) -> Record:
    """
    The primary reasons of a workload up to an instant; none where it asks no GPU, or is not counted.

    Returns:
        `timeline`: stretches with one reason each, without a hole but for the time in which it ran; `waits`
        tells whether the time counts as waiting. `hours_by_reason`: of the waiting, the longest first.
    """
    since_ms = int(known.course["submitted_ms"])
    spans, looks = [], []
    if known.course["has_reasons"]:
        asked = {
            "cluster": cluster,
            "uid": known.course["uid"],
            "since_ms": since_ms,
            "as_of_ms": as_of_ms,
        }
        looks = [Stretch(**_any(row)) for row in store.rows(_LOOKS, asked)]
        spans = [
            Spent(state=State(row["state"]), word=row["word"], start_ms=row["start_ms"], end_ms=row["end_ms"])
            for row in known.spans
        ]
    timeline: list[Piece] = []
    waited: dict[str, int] = {}
    for piece in pieces(spans, looks, from_ms=since_ms, to_ms=as_of_ms):
        if piece.waits:
            waited[piece.reason] = waited.get(piece.reason, 0) + piece.end_ms - piece.start_ms
        if timeline and _goes_on(timeline[-1], piece):
            timeline[-1] = replace(timeline[-1], end_ms=piece.end_ms)
        else:
            timeline.append(piece)
    return {
        "timeline": [
            {
                "reason": one.reason,
                "blocker": one.blocker,
                "source": one.source,
                "waits": one.waits,
                "start_at": format_instant(one.start_ms),
                "end_at": format_instant(one.end_ms),
            }
            for one in timeline
        ],
        "hours_by_reason": [
            {"reason": reason, "hours": waited_ms / MS_PER_HOUR}
            for reason, waited_ms in sorted(waited.items(), key=lambda one: (-one[1], one[0]))
        ],
    }


def _goes_on(last: Piece, piece: Piece) -> bool:
    return (last.end_ms, last.reason, last.blocker, last.waits) == (
        piece.start_ms,
        piece.reason,
        piece.blocker,
        piece.waits,
    )


def _any(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose columns are of the types that its query gives them."""
    return dict(row)
