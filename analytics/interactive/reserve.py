"""The interactive reserve: what interactive work holds or could take, against its part of the pool."""

from collections.abc import Sequence
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
    def of(cls, rows: Sequence[tuple[int, int, Row]], policy: Policy) -> Self:
        """
        From stretches: when each begins and ends, and its row.

        A node that is cordoned or not ready, or gone, offers nothing; what pods hold on it is held.
        """
        codes: dict[object, int] = {}
        told = np.array(
            [
                (from_ms, until_ms, codes.setdefault(row["node"], len(codes)), *_parts(row, policy))
                for from_ms, until_ms, row in rows
            ],
            np.int64,
        ).reshape(-1, 7)
        begin, end = told[:, [2, 0, 3, 4, 5, 6]], told[:, [2, 1, 3, 4, 5, 6]] * [1, 1, -1, -1, -1, -1]
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


def _parts(row: Row, policy: Policy) -> tuple[int, int, int, int]:
    """What a row offers, and holds: in all, of interactive work, and of what gives way."""
    if row["what"] != "held":
        known = row["schedulable"] and row["allocatable"] is not None
        return (int(str(row["allocatable"])) if known else 0), 0, 0, 0
    micro = 0 if row["micro_gpus"] is None else int(str(row["micro_gpus"]))
    of_class = str(row["service_class"])
    gives_way = of_class in policy.preemptible_classes
    return 0, micro, micro * (of_class == ServiceClass.INTERACTIVE), micro * gives_way


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
    rooms = _Rooms.of([(0, 1, row) for row in rows], policy)
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
    stretches: list[tuple[int, int, Row]] = []
    for row in rows:
        start_ms, end_ms = int(str(row["start_ms"])), row["end_ms"]
        until_ms = window.end_ms if end_ms is None else min(int(str(end_ms)), window.end_ms)
        from_ms = max(start_ms, window.start_ms)
        if from_ms < until_ms:
            stretches.append((from_ms, until_ms, row))
    rooms = _Rooms.of(stretches, policy)
    lengths = np.diff(rooms.at_ms, append=window.end_ms)
    return float(np.sum(np.maximum(0.0, _missing(rooms, policy)) * lengths))
