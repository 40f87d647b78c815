"""The interactive reserve: what interactive work holds or could take, against its part of the pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
import polars as pl

from analytics.censored import Longs
from domain.metric import Row
from domain.policy import Policy
from domain.window import Window
from domain.workload import ServiceClass

# What is read of nodes and pods that all hold at an instant.
_NOW: Final = {
    "what": pl.String,
    "node": pl.String,
    "allocatable": pl.Int64,
    "schedulable": pl.Boolean,
    "micro_gpus": pl.Int64,
    "service_class": pl.String,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """
    A pool at an instant, micro-GPU.

    `capacity`: what is schedulable or held. `preemptible` is held by classes that give way.
    """

    capacity: int = 0
    free: int = 0
    interactive: int = 0
    preemptible: int = 0


class _Rooms(NamedTuple):
    """The room of a pool after each change, in order of the instants `at_ms`."""

    at_ms: Longs
    capacity: Longs
    free: Longs
    interactive: Longs
    preemptible: Longs

    @classmethod
    def of(cls, stretches: pl.DataFrame, from_ms: Longs, until_ms: Longs, policy: Policy) -> Self:
        """
        From stretches, and when each begins and ends.

        A node that is cordoned or not ready, or gone, offers nothing; what pods hold on it is held.
        """
        parts = np.array([_nodes(stretches), from_ms, *_parts(stretches, policy)]).T[from_ms < until_ms]
        begin, end = parts.copy(), parts * [1, 1, -1, -1, -1, -1]
        end[:, 1] = until_ms[from_ms < until_ms]
        amounts = np.concatenate((begin, end))
        node, at_ms, offered, held, interactive, preemptible = amounts[np.lexsort(amounts.T[1::-1])].T
        begins = np.flatnonzero(np.diff(node, prepend=-1))
        offered, held = _within(offered, begins), _within(held, begins)
        order = np.argsort(at_ms, kind="stable")
        changed = (_steps(np.maximum(offered, held), begins), _steps(np.maximum(offered - held, 0), begins))
        return cls(at_ms[order], *(np.cumsum(each[order]) for each in (*changed, interactive, preemptible)))


def _within(changes: Longs, begins: Longs) -> Longs:
    """Running sums, anew from each of these places on."""
    sums = np.cumsum(changes)
    before = np.append(0, sums)[begins]
    return np.asarray(sums - np.repeat(before, np.diff(begins, append=len(changes))))


def _steps(levels: Longs, begins: Longs) -> Longs:
    """The other way: from each level to the next, from 0 at each of these places."""
    before = np.append(0, levels)[:-1]
    before[begins] = 0
    return np.asarray(levels - before)


def _nodes(stretches: pl.DataFrame) -> Longs:
    """A number for each node."""
    return stretches["node"].rank("dense").cast(pl.Int64).to_numpy()


def _parts(stretches: pl.DataFrame, policy: Policy) -> list[Longs]:
    """What stretches offer, and hold: in all, of interactive work, and of what gives way."""
    is_held, of_class = pl.col("what") == "held", pl.col("service_class").fill_null("")
    held = pl.when(is_held).then(pl.col("micro_gpus").fill_null(0)).otherwise(0)
    found = stretches.select(
        offered=pl.when(is_held | ~pl.col("schedulable"))
        .then(0)
        .otherwise(pl.col("allocatable").fill_null(0)),
        held=held,
        interactive=held * (of_class == str(ServiceClass.INTERACTIVE)),
        gives_way=held * of_class.is_in([str(name) for name in policy.preemptible_classes]),
    )
    return [_longs(column) for column in found]


def _longs(column: pl.Series) -> Longs:
    return column.cast(pl.Int64).to_numpy()


def shortfall(room: Room, policy: Policy) -> float:
    """
    Micro-GPU that are missing from the reserve; 0 where it is kept.

    >>> shortfall(Room(capacity=100, free=5, interactive=8), Policy())
    7.0
    """
    return float(max(0.0, _missing(room, policy)))


def _missing(room: Room | _Rooms, policy: Policy) -> Any:
    """The same; below 0 where there is room to spare."""
    kept = room.interactive + room.free + (room.preemptible if policy.reserve_counts_preemptible else 0)
    return policy.interactive_reserve_ratio * room.capacity - kept


def pool_now(rows: Sequence[Row], policy: Policy) -> Room:
    """A pool's room from rows of nodes and pods that all hold at the instant."""
    stretches = pl.DataFrame([{name: row.get(name) for name in _NOW} for row in rows], schema=_NOW)
    rooms = _Rooms.of(stretches, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64), policy)
    now = np.searchsorted(rooms.at_ms, 0, "right") - 1
    if now < 0:
        return Room()
    return Room(
        capacity=int(rooms.capacity[now]),
        free=int(rooms.free[now]),
        interactive=int(rooms.interactive[now]),
        preemptible=int(rooms.preemptible[now]),
    )


def shortfall_over(stretches: pl.DataFrame, window: Window, policy: Policy) -> float:
    """
    The shortfall of a pool summed over a window, micro-GPU times milliseconds.

    Args:
        stretches: of nodes and pods, a row each: what str, node str, allocatable i64, schedulable bool,
            micro_gpus i64, service_class str, start_ms i64, end_ms i64 (null: still).
        window: what lies outside is cut off.
        policy: the reserve.
    """
    from_ms = np.maximum(_longs(stretches["start_ms"]), window.start_ms)
    until_ms = np.minimum(_longs(stretches["end_ms"].fill_null(window.end_ms)), window.end_ms)
    rooms = _Rooms.of(stretches, from_ms, until_ms, policy)
    lengths = np.diff(rooms.at_ms, append=window.end_ms)
    return float(np.sum(np.maximum(0.0, _missing(rooms, policy)) * lengths))
