"""The interactive reserve: what interactive work holds or could take, against its part of the pool."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from analytics.censored import Longs
from domain.metric import Row
from domain.policy import Policy
from domain.window import Window
from domain.workload import ServiceClass


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
    def of(cls, rows: Sequence[Row], from_ms: Longs, until_ms: Longs, policy: Policy) -> Self:
        """
        From stretches: their rows, and when each begins and ends.

        A node that is cordoned or not ready, or gone, offers nothing; what pods hold on it is held.
        """
        codes: dict[object, int] = {}
        node_of = _longs(codes.setdefault(row["node"], len(codes)) for row in rows)
        parts = np.array([node_of, from_ms, *_parts(rows, policy)]).T[from_ms < until_ms]
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


def _parts(rows: Sequence[Row], policy: Policy) -> tuple[Longs, Longs, Longs, Longs]:
    """What rows offer, and hold: in all, of interactive work, and of what gives way."""
    holds = [row["what"] == "held" for row in rows]
    offered = _longs(
        0 if held or not row["schedulable"] else row["allocatable"] or 0
        for row, held in zip(rows, holds, strict=True)
    )
    held = _longs(row["micro_gpus"] or 0 if held else 0 for row, held in zip(rows, holds, strict=True))
    classes = [str(row["service_class"]) if held else "" for row, held in zip(rows, holds, strict=True)]
    interactive = _longs(of_class == ServiceClass.INTERACTIVE for of_class in classes)
    gives_way = _longs(of_class in policy.preemptible_classes for of_class in classes)
    return offered, held, held * interactive, held * gives_way


def _longs(values: Iterable[object]) -> Longs:
    return np.array(list(values), np.int64)


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
    rooms = _Rooms.of(rows, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64), policy)
    now = np.searchsorted(rooms.at_ms, 0, "right") - 1
    if now < 0:
        return Room()
    return Room(
        capacity=int(rooms.capacity[now]),
        free=int(rooms.free[now]),
        interactive=int(rooms.interactive[now]),
        preemptible=int(rooms.preemptible[now]),
    )


def shortfall_over(rows: Sequence[Row], window: Window, policy: Policy) -> float:
    """
    The shortfall of a pool summed over a window, micro-GPU times milliseconds.

    Args:
        rows: stretches of nodes and pods: what, node, allocatable, schedulable, micro_gpus,
            service_class, start_ms, end_ms (null: still).
        window: what lies outside is cut off.
        policy: the reserve.
    """
    from_ms = np.maximum(_longs(row["start_ms"] for row in rows), window.start_ms)
    ends = _longs(window.end_ms if row["end_ms"] is None else row["end_ms"] for row in rows)
    rooms = _Rooms.of(rows, from_ms, np.minimum(ends, window.end_ms), policy)
    lengths = np.diff(rooms.at_ms, append=window.end_ms)
    return float(np.sum(np.maximum(0.0, _missing(rooms, policy)) * lengths))
