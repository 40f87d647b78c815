"""What moving workloads that may be moved would give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics.fragmentation.inventory import Ask, Devices, Inventory, stranded


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable:
    """A pod on a node that may be stopped and placed anew, on `nodes` only; None for any."""

    node: str
    devices: Devices
    nodes: frozenset[str] | None = None

    def fits(self, node: str, room: Mapping[str, int]) -> bool:
        """Whether it may stand on a node and finds room there."""
        return (self.nodes is None or node in self.nodes) and all(
            count <= room.get(name, 0) for name, count in self.devices.items()
        )


def repacked(inventory: Inventory, pods: Sequence[Movable]) -> Inventory | None:
    """
    The free devices after the movable pods are placed anew, first fit decreasing.

    Largest pod first, each into the first node that holds it; nodes stand in the order of what is
    free on them without any movable pod, fullest first. None where a pod finds no node: then
    nothing is moved.
    """
    room: dict[str, dict[str, int]] = {node: dict(devices) for node, devices in inventory.free.items()}
    moved = [pod for pod in pods if pod.node in room]
    for pod in moved:
        for name, count in pod.devices.items():
            room[pod.node][name] = room[pod.node].get(name, 0) + count
    order = sorted(room, key=lambda node: (sum(room[node].values()), node))
    # Where the last pod of a kind went: room only shrinks, so what it passed by is passed by its like too.
    reached: dict[object, int] = {}
    for pod in sorted(moved, key=_size, reverse=True):
        kind = (*sorted(pod.devices.items()), pod.nodes)
        later = range(reached.get(kind, 0), len(order))
        place = next((place for place in later if pod.fits(order[place], room[order[place]])), None)
        if place is None:
            return None
        reached[kind] = place
        for name, count in pod.devices.items():
            room[order[place]][name] -= count
    return Inventory(room)


def reclaimable(
    inventory: Inventory, asks: Sequence[Ask], pods: Sequence[Movable]
) -> dict[tuple[str, str], int]:
    """
    Devices by node and resource that are stranded now, less those stranded after the repack.

    A node's part may be negative: the repack strands there what it frees elsewhere. Empty where the
    repack as a whole gives nothing back.
    """
    before_by = stranded(inventory, asks)
    after = repacked(inventory, pods) if any(before_by.values()) else None
    if after is None:
        return {}
    after_by = stranded(after, asks)
    gained = {place: count - after_by.get(place, 0) for place, count in before_by.items()}
    return gained if sum(gained.values()) > 0 else {}


def _size(pod: Movable) -> tuple[int, list[tuple[str, int]]]:
    return sum(pod.devices.values()), sorted(pod.devices.items())
