"""For what one workload waited, piece by piece: its spans, with what looks found in them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from analytics.why.reason import Reason
from analytics.why.timeline import NOT_EVALUATED, Stretch
from domain.workload import WAITING_STATES, State

# The states before it runs; what each says by itself where nobody looked, and nothing of the others.
_BEFORE: Final = frozenset({*WAITING_STATES, State.HELD, State.STARTING, State.BACKOFF})
_ALONE: Final = {
    State.HELD: Reason.HELD_BY_OWNER,
    State.CHECKING: Reason.ADMISSION_CHECK,
    State.STARTING: Reason.STARTING,
    State.BACKOFF: Reason.BACKOFF,
}
_GATED: Final = "SchedulingGated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A span of a workload; `word` is the scheduler's, and without an end it goes on."""

    state: State
    word: str
    start_ms: int
    end_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Time with one reason; `waits` tells whether it counts as waiting."""

    reason: str
    source: str
    blocker: str
    waits: bool
    start_ms: int
    end_ms: int


def pieces(spans: Iterable[Spent], looks: Sequence[Stretch], *, from_ms: int, to_ms: int) -> list[Piece]:
    """
    The time in [from, to) in which it did not run, in order, each piece with its reason.

    The same as the macro `reason_pieces` of the store gives of many; that one takes a hundredth of a second
    to be planned, which is too long for one.

    Args:
        spans: of one workload, which do not overlap.
        looks: what was found of it, stretches that do not overlap.
        from_ms: from when.
        to_ms: until when.

    >>> spent = Spent(state=State.CHECKING, word="", start_ms=10, end_ms=50)
    >>> look = Stretch(uid="a", reason="UNKNOWN", source="message", blocker="", start_ms=20, end_ms=30)
    >>> [(one.reason, one.start_ms, one.end_ms) for one in pieces([spent], [look], from_ms=0, to_ms=99)]
    [('ADMISSION_CHECK', 10, 20), ('UNKNOWN', 20, 30), ('ADMISSION_CHECK', 30, 50)]
    """
    ordered = sorted(looks, key=lambda one: one.start_ms)
    found = (
        piece
        for span in spans
        if span.state in _BEFORE
        for piece in _of_span(span, ordered, from_ms=from_ms, to_ms=to_ms)
    )
    return sorted((one for one in found if one.start_ms < one.end_ms), key=lambda one: one.start_ms)


def _of_span(span: Spent, looks: Sequence[Stretch], *, from_ms: int, to_ms: int) -> Iterator[Piece]:
    now_ms = max(span.start_ms, from_ms)
    end_ms = to_ms if span.end_ms is None else min(span.end_ms, to_ms)
    waits = span.state in WAITING_STATES
    alone = Reason.GATED if span.state is State.HELD and span.word == _GATED else _ALONE.get(span.state)

    def unseen(start_ms: int, until_ms: int) -> Piece:
        return Piece(
            reason=NOT_EVALUATED if alone is None else str(alone),
            source="" if alone is None else "state",
            blocker="",
            waits=waits,
            start_ms=start_ms,
            end_ms=until_ms,
        )

    for look in looks:
        if look.end_ms <= now_ms or look.start_ms >= end_ms:
            continue
        start_ms, until_ms = max(look.start_ms, now_ms), min(look.end_ms, end_ms)
        yield unseen(now_ms, start_ms)
        yield Piece(
            reason=look.reason,
            source=look.source,
            blocker=look.blocker,
            waits=waits,
            start_ms=start_ms,
            end_ms=until_ms,
        )
        now_ms = until_ms
    yield unseen(now_ms, end_ms)
