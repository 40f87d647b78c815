"""A pool's free devices and what waits for them: what fits at once, and what stays stranded."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from analytics.packing import Alike, fits_together, mixes

Devices: TypeAlias = Mapping[str, int]
# A node and a GPU resource of it: where devices of one kind lie together.
Place: TypeAlias = tuple[str, str]
_Key: TypeAlias = tuple[tuple[tuple[str, int], ...], frozenset[str] | None]

# Placing pods of several sizes at once is bin packing: a search that takes longer is given up.
_MOST_STEPS = 200_000


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
    wanted = tuple(part.pods for part in ask.parts)
    # Nodes that offer as much, and take the same parts, are alike.
    counted = Counter(
        (
            tuple(devices.get(name, 0) for name in names),
            tuple(min(part.pods, holds(devices, part)) if part.may_use(node) else 0 for part in ask.parts),
        )
        for node, devices in free.items()
    )
    asked = [part.devices for part in ask.parts]
    alike = [
        Alike(nodes, most, partial(mixes, dict(zip(names, room, strict=True)), asked, most))
        for (room, most), nodes in counted.items()
    ]
    return fits_together(alike, wanted, most_steps=_MOST_STEPS) is True


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
