"""
From rows of counts to stretches of a queue in which they stayed the same.

A row stands for a step. What is known of an instant is not told again: the same counts change
nothing, other ones contradict and are set aside, and so is a row that would stand into another.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import structs

from collector.imports.row import Aside
from collector.imports.state_table import StateRow
from domain.queue_state import Counts, QueueState

CONTRADICTS: Final = "it contradicts what is known of the same queue and instant"
NEARER: Final = "nearer to another row of its queue than the mapping's step"


@dataclass(slots=True)
class TakenStates:
    """
    What became of rows: `new` and `known` ones, in `stretches` of what is new; the others `aside`.

    `rows` are those that stand in the books as they are.
    """

    new: int = 0
    known: int = 0
    stretches: list[QueueState] = field(default_factory=list)
    aside: list[Aside] = field(default_factory=list)
    rows: list[StateRow] = field(default_factory=list)


def taken(
    rows: Iterable[StateRow], known: Mapping[str, Sequence[QueueState]], *, step_ms: int
) -> TakenStates:
    """
    Sort rows of one cluster into what is new, known, and set aside; of two that contradict the first stays.

    Args:
        rows: in any order.
        known: stretches of each queue that are in the books already, in the order of time, as far as they
            lie near the rows.
        step_ms: how long a row stands.
    """
    found = TakenStates()
    by_queue: dict[str, list[StateRow]] = defaultdict(list)
    for row in rows:
        by_queue[row.queue].append(row)
    for queue, members in by_queue.items():
        members.sort(key=lambda row: (row.at_ms, row.line))
        _take_queue(members, known.get(queue, ()), step_ms, found)
    return found


def _take_queue(
    rows: Sequence[StateRow], known: Sequence[QueueState], step_ms: int, found: TakenStates
) -> None:
    starts = [state.start_ms for state in known]
    open_state: QueueState | None = None
    last: StateRow | None = None
    for row in rows:
        place = bisect_right(starts, row.at_ms)
        before = known[place - 1] if place else None
        because, is_new = "", True
        if before is not None and row.at_ms < before.end_ms:
            because, is_new = _against(row, before.counts, before.start_ms, before.end_ms, step_ms), False
        elif place < len(starts) and starts[place] < row.at_ms + step_ms:
            because = NEARER
        elif last is not None and row.at_ms < last.at_ms + step_ms:
            because = _against(row, last.counts, last.at_ms, last.at_ms + step_ms, step_ms)
            is_new = False
        if because:
            found.aside.append(Aside(line=row.line, because=because, sample=f"{row.queue} at {row.at_ms}"))
            continue
        found.rows.append(row)
        if not is_new:
            found.known += 1
            continue
        found.new += 1
        last = row
        end_ms = row.at_ms + step_ms
        if open_state is not None and (open_state.end_ms, open_state.counts) == (row.at_ms, row.counts):
            open_state = structs.replace(open_state, end_ms=end_ms)
            found.stretches[-1] = open_state
        else:
            open_state = QueueState(queue=row.queue, start_ms=row.at_ms, end_ms=end_ms, counts=row.counts)
            found.stretches.append(open_state)


def _against(row: StateRow, counts: Counts, start_ms: int, end_ms: int, step_ms: int) -> str:
    """Why a row cannot stand beside a stretch that covers its instant; empty where it says the same."""
    if (row.at_ms - start_ms) % step_ms or end_ms - row.at_ms < step_ms:
        return NEARER
    return "" if row.counts == counts else CONTRADICTS
