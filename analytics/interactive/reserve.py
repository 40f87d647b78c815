"""The interactive reserve: what interactive work holds or could take, against its part of the pool."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from domain.metric import Row
from domain.policy import Policy
from domain.window import Window
from domain.workload import ServiceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """
    A pool or a node at an instant, micro-GPU.

    `capacity`: what is schedulable or held. `preemptible` is held by classes that give way.
    """

    capacity: int = 0
    free: int = 0
    interactive: int = 0
    preemptible: int = 0

    def plus(self, other: "Room", sign: int = 1) -> "Room":
        """Both together, or without the other."""
        return Room(
            capacity=self.capacity + sign * other.capacity,
            free=self.free + sign * other.free,
            interactive=self.interactive + sign * other.interactive,
            preemptible=self.preemptible + sign * other.preemptible,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node at an instant, micro-GPU; one that is cordoned or not ready, or gone, offers nothing."""

    allocatable: int = 0
    schedulable: bool = False
    held: int = 0
    interactive: int = 0
    preemptible: int = 0

    @property
    def room(self) -> Room:
        """What it adds to its pool."""
        offered = self.allocatable if self.schedulable else 0
        return Room(
            capacity=max(offered, self.held),
            free=max(offered - self.held, 0),
            interactive=self.interactive,
            preemptible=self.preemptible,
        )

    def with_pod(self, micro: int, service_class: str, policy: Policy) -> "Node":
        """The node with a pod more, or less where `micro` is negative."""
        return replace(
            self,
            held=self.held + micro,
            interactive=self.interactive + micro * (service_class == ServiceClass.INTERACTIVE),
            preemptible=self.preemptible + micro * (service_class in policy.preemptible_classes),
        )


def shortfall(room: Room, policy: Policy) -> float:
    """
    Micro-GPU that are missing from the reserve; 0 where it is kept.

    >>> shortfall(Room(capacity=100, free=5, interactive=8), Policy())
    7.0
    """
    kept = room.interactive + room.free + (room.preemptible if policy.reserve_counts_preemptible else 0)
    return max(0.0, policy.interactive_reserve_ratio * room.capacity - kept)


def pool_now(rows: Iterable[Row], policy: Policy) -> Room:
    """A pool's room from rows of nodes and pods that all hold at the instant."""
    nodes: dict[str, Node] = {}
    for row in rows:
        name = str(row["node"])
        nodes[name] = _changed(nodes.get(name, Node()), row, policy, sign=1)
    total = Room()
    for node in nodes.values():
        total = total.plus(node.room)
    return total


def shortfall_over(rows: Sequence[Row], window: Window, policy: Policy) -> float:
    """
    The shortfall of a pool summed over a window, micro-GPU times milliseconds.

    Args:
        rows: stretches of nodes and pods: what, node, allocatable, schedulable, micro_gpus,
            service_class, start_ms, end_ms (null: still).
        window: what lies outside is cut off.
        policy: the reserve.
    """
    changes: list[tuple[int, int, Row]] = []
    for row in rows:
        start_ms, end_ms = int(str(row["start_ms"])), row["end_ms"]
        until_ms = window.end_ms if end_ms is None else min(int(str(end_ms)), window.end_ms)
        from_ms = max(start_ms, window.start_ms)
        if from_ms < until_ms:
            changes += [(from_ms, 1, row), (until_ms, -1, row)]
    nodes: dict[str, Node] = {}
    total, area, at_ms = Room(), 0.0, window.start_ms
    for change_ms, sign, row in sorted(changes, key=lambda change: change[:2]):
        area += shortfall(total, policy) * (change_ms - at_ms)
        at_ms = change_ms
        name = str(row["node"])
        before = nodes.get(name, Node())
        nodes[name] = _changed(before, row, policy, sign=sign)
        total = total.plus(before.room, -1).plus(nodes[name].room)
    return area + shortfall(total, policy) * (window.end_ms - at_ms)


def _changed(node: Node, row: Row, policy: Policy, *, sign: int) -> Node:
    if row["what"] == "held":
        micro = 0 if row["micro_gpus"] is None else int(str(row["micro_gpus"]))
        return node.with_pod(sign * micro, str(row["service_class"]), policy)
    if sign < 0:
        return replace(node, allocatable=0, schedulable=False)
    allocatable = 0 if row["allocatable"] is None else int(str(row["allocatable"]))
    return replace(node, allocatable=allocatable, schedulable=bool(row["schedulable"]))
