"""A pool's free devices and what waits for them: what fits at once, and what stays stranded."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Devices: TypeAlias = Mapping[str, int]
# A node and a GPU resource of it: where devices of one kind lie together.
Place: TypeAlias = tuple[str, str]
_Key: TypeAlias = tuple[tuple[tuple[str, int], ...], frozenset[str] | None]
# Free devices of one node, resource by resource in a fixed order.
_Room: TypeAlias = tuple[int, ...]

# Placing pods of several sizes at once is bin packing: a search that takes longer is given up.
_MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    Pods of one workload that ask alike: each asks `devices`, whole units by resource name.

    They may stand on `nodes` only; None for any.
    """

    pods: int
    devices: Devices
    nodes: frozenset[str] | None = None

    def may_use(self, node: str) -> bool:
        """Whether its pods may stand there."""
        return self.nodes is None or node in self.nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A workload that waits: all pods of all parts are wanted at once."""

    parts: tuple[Part, ...]

    @property
    def resources(self) -> frozenset[str]:
        """The GPU resources that any of its pods asks."""
        return frozenset(name for part in self.parts for name in part.devices)


@dataclass(frozen=True, slots=True)
class Inventory:
    """Free devices of a pool's nodes; a node that is cordoned or not ready has none."""

    free: Mapping[str, Devices] = field(default_factory=dict)

    def places(self) -> Iterable[tuple[Place, int]]:
        """Each node and resource with its free devices."""
        for node, devices in self.free.items():
            for resource, count in devices.items():
                yield (node, resource), count


def holds(devices: Devices, part: Part) -> int:
    """
    How many pods of the part the free devices of one node hold.

    >>> holds({"nvidia.com/gpu": 7}, Part(pods=1, devices={"nvidia.com/gpu": 2}))
    3
    """
    return min((devices.get(name, 0) // each for name, each in part.devices.items()), default=0)


def is_placeable(ask: Ask, inventory: Inventory) -> bool:
    """
    Whether all pods fit at the same time, quota ignored.

    Exact, except for pods of several sizes on so many nodes that the search is given up: then no.
    """
    free = inventory.free
    if any(
        sum(holds(devices, part) for node, devices in free.items() if part.may_use(node)) < part.pods
        for part in ask.parts
    ):
        return False
    if len(ask.parts) <= 1:
        return True
    names = sorted(ask.resources)
    parts = sorted(ask.parts, key=lambda part: sorted(part.devices.values()), reverse=True)
    # A node on which not all of them may stand has a seat for each pod that may: one more resource a part.
    seats = [part for part in parts if part.nodes is not None] if len({p.nodes for p in parts}) > 1 else []
    rooms = tuple(
        sorted(
            tuple(devices.get(name, 0) for name in names)
            + tuple(part.pods if part.may_use(node) else 0 for part in seats)
            for node, devices in free.items()
            if seats or parts[0].may_use(node)
        )
    )
    pods = [
        tuple(part.devices.get(name, 0) for name in names) + tuple(int(part is seat) for seat in seats)
        for part in parts
        for _ in range(part.pods)
    ]
    return _pack_first(rooms, pods) or _Search(_MOST_STEPS).fits(rooms, pods)


def stranded(inventory: Inventory, asks: Sequence[Ask]) -> dict[Place, int]:
    """
    Free devices that no placeable workload can use, by node and resource.

    usable = the most that pods of one placeable workload fill. What nothing waits for is not stranded:
    a resource, or a node on which nothing that waits for its resource may stand.
    """
    wanting = {_key(part): part for ask in asks for part in ask.parts}.values()
    parts = {
        _key(part): part for ask in _distinct(asks) if is_placeable(ask, inventory) for part in ask.parts
    }
    found: dict[Place, int] = {}
    for (node, resource), free in inventory.places():
        usable = max(
            (
                holds(inventory.free[node], part) * part.devices[resource]
                for part in parts.values()
                if resource in part.devices and part.may_use(node)
            ),
            default=0,
        )
        is_wanted = any(resource in part.devices and part.may_use(node) for part in wanting)
        found[node, resource] = free - usable if is_wanted else 0
    return found


def _key(part: Part) -> _Key:
    return tuple(sorted(part.devices.items())), part.nodes


def _distinct(asks: Iterable[Ask]) -> Iterable[Ask]:
    """Workloads that ask alike are tried once."""
    return {frozenset(Counter((_key(p), p.pods) for p in ask.parts).items()): ask for ask in asks}.values()


def _pack_first(rooms: tuple[_Room, ...], pods: Sequence[_Room]) -> bool:
    """Whether the pods, largest first, each fit into the fullest node that still holds it."""
    left = list(rooms)
    for pod in pods:
        fitting = [place for place, room in enumerate(left) if _is_within(pod, room)]
        if not fitting:
            return False
        best = min(fitting, key=lambda place: sum(left[place]))
        left[best] = _less(left[best], pod)
    return True


class _Search:
    """Tries all ways to place pods; nodes that look alike are tried once."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._dead: set[tuple[int, tuple[_Room, ...]]] = set()

    def fits(self, rooms: tuple[_Room, ...], pods: Sequence[_Room], placed: int = 0) -> bool:
        """Whether the pods from `placed` on fit into what is left."""
        if placed == len(pods):
            return True
        self._steps -= 1
        if self._steps < 0 or (placed, rooms) in self._dead:
            return False
        for room in sorted(set(rooms)):
            if not _is_within(pods[placed], room):
                continue
            others = list(rooms)
            others.remove(room)
            left = tuple(sorted([*others, _less(room, pods[placed])]))
            if self.fits(left, pods, placed + 1):
                return True
        self._dead.add((placed, rooms))
        return False


def _is_within(pod: _Room, room: _Room) -> bool:
    return all(asked <= free for asked, free in zip(pod, room, strict=True))


def _less(room: _Room, pod: _Room) -> _Room:
    return tuple(free - asked for asked, free in zip(pod, room, strict=True))
