"""What is learnt of a closed month after retention dropped facts of it: not booked, but counted and told."""

from typing import Any, Final

from domain.money import MICRO_GPU_MS_PER_GPU_HOUR
from store import statements as kept
from store.embedded import Store
from store.retention import dropped_until
from store.statements import ClosedMonth, Left

BECAUSE: Final = "learnt of a closed month after keeping.retention dropped facts of it: not booked"

# One row: what is held in a month, micro-GPU-milliseconds.
_HELD: Final = """
select
    coalesce(sum(
        micro_gpus::hugeint
        * (least(coalesce(released_ms, $end_ms), $end_ms) - greatest(bound_ms, $start_ms))
    ), 0) as held
from holding
where
    bound_ms < $end_ms
    and open_until_ms >= $start_ms
    and coalesce(released_ms > $start_ms, true)
"""


def look(store: Store, head: ClosedMonth, basis: str) -> None:
    """
    Count what was learnt of a month since it was looked at last.

    Where more was dropped meanwhile, what is left cannot be compared: it is noted only. So look before facts
    are dropped, and again after it.

    Args:
        basis: what the month rests on now.
    """
    now, before = _now(store, head, basis), kept.left(store).get(head.month)
    if before is None:
        kept.note_left(store, now)
    elif (before.dropped_ms, before.basis) != (now.dropped_ms, basis):
        learnt = before.dropped_ms == now.dropped_ms
        kept.note_left(store, now, learnt=learnt, unbooked=now.held - before.held if learnt else 0)


def note_anew(store: Store, head: ClosedMonth, basis: str) -> None:
    """Note what a month rests on now as what it rested on before: nothing was learnt."""
    kept.note_left(store, _now(store, head, basis))


def _now(store: Store, head: ClosedMonth, basis: str) -> Left:
    [row] = store.rows(_HELD, {"start_ms": head.start_ms, "end_ms": head.end_ms})
    dropped_ms, held = dropped_until(store), int(str(row["held"]))
    return Left(month=head.month, dropped_ms=dropped_ms, basis=basis, held=held)


def untold(store: Store) -> list[str]:
    """What no close has said yet, month by month."""
    return [
        f"of {each.month} something was learnt {'once' if each.times == 1 else f'{each.times} times'} after"
        " keeping.retention dropped facts of it, by which"
        f" {each.unbooked / MICRO_GPU_MS_PER_GPU_HOUR:+.2f} GPU-hours are held: not booked"
        for each in kept.left(store).values()
        if each.times and not each.told_in
    ]


def set_aside(store: Store) -> list[dict[str, Any]]:
    """How often that was, as `Store.set_aside_counts`."""
    return [
        {"cluster": "", "source": f"month {each.month}", "because": BECAUSE, "count": each.times}
        for each in kept.left(store).values()
        if each.times
    ]
