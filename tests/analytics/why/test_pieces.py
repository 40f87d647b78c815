"""What one waited for, cut in Python, is what the store's macro makes of all."""

import random
from collections import defaultdict
from typing import Any

from analytics.why.pieces import Piece, Spent, pieces
from analytics.why.timeline import Stretch
from domain.workload import State
from tests.golden.cases import store_of

WORKLOADS, LAST_MS = 150, 60
STATES = (*State, State.QUEUED, State.PLACING, State.HELD)


def course(chance: random.Random) -> list[Spent]:
    """Spans without a hole; the last one may go on."""
    spans, at_ms = [], chance.randrange(10)
    while at_ms < LAST_MS:
        end_ms: int | None = at_ms + chance.randrange(1, 20)
        if chance.random() < 0.1:
            end_ms = None
        word = chance.choice(["", "SchedulingGated"])
        spans.append(Spent(state=chance.choice(STATES), word=word, start_ms=at_ms, end_ms=end_ms))
        if end_ms is None:
            break
        at_ms = end_ms
    return spans


def looks(uid: str, chance: random.Random) -> list[Stretch]:
    """Stretches that do not overlap, now and then with time between them; the last one may stand."""
    found, at_ms = [], chance.randrange(20)
    while at_ms < LAST_MS and chance.random() < 0.8:
        end_ms = chance.choice([at_ms + chance.randrange(1, 15), 2**63 - 1])
        reason, source = chance.choice([("GPU_SHORTAGE", "placement"), ("UNKNOWN", "message")])
        found.append(
            Stretch(uid=uid, reason=reason, source=source, blocker="b", start_ms=at_ms, end_ms=end_ms)
        )
        at_ms = end_ms + chance.choice([0, 0, 5])
    return found


def test_one_workload_is_told_the_pieces_that_the_store_adds_up() -> None:
    chance = random.Random(38)
    courses = {f"w{number}": course(chance) for number in range(WORKLOADS)}
    looked = {uid: looks(uid, chance) for uid in courses}
    tables: dict[str, list[dict[str, Any]]] = {
        "workload": [{"workload_uid": uid, "submitted_ms": 0} for uid in courses],
        "span": [
            {"workload_uid": uid, "state": str(one.state), "reason": one.word, "start_ms": one.start_ms,
             "end_ms": one.end_ms}
            for uid, spans in courses.items() for one in spans
        ],
        "wait_reason": [
            {"workload_uid": uid, "reason": one.reason, "source": one.source, "blocker": one.blocker,
             "start_ms": one.start_ms, "end_ms": one.end_ms}
            for uid, stretches in looked.items() for one in stretches
        ],
    }  # fmt: skip
    sql = """
    select workload_uid as uid, reason, source, blocker, waits, start_ms, end_ms
    from wait_reasons($from_ms, $to_ms) order by start_ms
    """
    with store_of(tables) as store:
        for from_ms, to_ms in ((0, LAST_MS), (15, 40)):
            rows: list[dict[str, Any]] = store.rows(sql, {"from_ms": from_ms, "to_ms": to_ms})
            summed: defaultdict[str, list[Piece]] = defaultdict(list)
            for row in rows:
                summed[row.pop("uid")].append(Piece(**row))
            assert len(rows) > WORKLOADS
            for uid, spans in courses.items():
                assert pieces(spans, looked[uid], from_ms=from_ms, to_ms=to_ms) == summed[uid], uid
