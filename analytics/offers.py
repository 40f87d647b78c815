"""What each node offers from when on: by its device plugin, else by the device slices on it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from analytics.cards import count_of
from analytics.claims import by_card, offered_resources
from analytics.history import Catalog, History
from domain import objects
from domain.claims import Device, ResourceSlice
from domain.facts import Moment, ObjectKind
from domain.quantity import is_gpu_resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """
    A node from `at_ms` on.

    `product` is the model as its label has it, with how its cards are cut; `count` its physical cards,
    None where nobody tells.
    """

    at_ms: int
    model: str
    product: str
    replicas: int
    count: int | None
    capacity: objects.Resources
    allocatable: objects.Resources
    body: objects.Node

    @property
    def schedulable(self) -> bool:
        """Whether it takes new pods."""
        return self.body.ready == "True" and not self.body.unschedulable


def first_sight(around: Iterable[History]) -> int:
    """When nodes were first read: what a node that is older held or left idle before, nobody saw."""
    return min(
        (d.observed_ms for h in around if h.kind is ObjectKind.NODE for d in h.descriptions), default=0
    )


def offers(around: Collection[History], *, first_ms: int = 0) -> Iterator[tuple[History, list[Offer]]]:
    """
    Each node among these objects with what it offered, in order of time; nothing before `first_ms`.

    A node without GPUs of a device plugin has those that ResourceSlices offer on it.
    """
    slices: dict[str, list[History]] = {}
    for history in around:
        for node in {d.body.node for d in history.descriptions if isinstance(d.body, ResourceSlice)}:
            slices.setdefault(node, []).append(history)
    for history in around:
        if history.kind is ObjectKind.NODE:
            of_node, catalog = slices.get(history.name, ()), Catalog.of([history])
            turns = _turns(history, of_node, first_ms)
            yield history, [_offer(history.name, at_ms, body, catalog, of_node) for at_ms, body in turns]


def _offer(node: str, at_ms: int, body: objects.Node, catalog: Catalog, slices: Collection[History]) -> Offer:
    stretch = catalog.at(node, at_ms)
    model, product, replicas = (stretch.model, stretch.product, stretch.replicas) if stretch else ("", "", 1)
    capacity, allocatable, count = body.gpu_capacity, body.gpu_allocatable, count_of(body.labels)
    if not any(is_gpu_resource(name) and units for name, units in capacity.items()):
        # Devices are never shared as those of a device plugin are.
        devices, product, replicas = _offered(slices, node, at_ms), model, 1
        capacity, count = offered_resources(devices) or capacity, len(by_card(devices))
        allocatable = capacity
    return Offer(
        at_ms=at_ms,
        model=model,
        product=product,
        replicas=replicas,
        count=count,
        capacity=capacity,
        allocatable=allocatable,
        body=body,
    )


def _turns(node: History, slices: Iterable[History], first_ms: int) -> Iterator[tuple[int, objects.Node]]:
    """When the node or what is offered on it may have changed, with what the node said of itself then."""
    said = {max(d.from_ms, first_ms): d.body for d in node.descriptions if isinstance(d.body, objects.Node)}
    gone = node.first(Moment.GONE)
    offered: set[int] = set()
    for history in slices:
        removed = history.first(Moment.GONE)
        offered |= {max(described.from_ms, first_ms) for described in history.descriptions}
        offered |= {removed.at_ms} if removed else set()
    body: objects.Node | None = None
    for at_ms in sorted(said.keys() | {at_ms for at_ms in offered if gone is None or at_ms < gone.at_ms}):
        body = said.get(at_ms, body)
        if body is not None:
            yield at_ms, body


def _offered(slices: Iterable[History], node: str, at_ms: int) -> list[Device]:
    """What is offered on a node at an instant: of each pool, the slices of its newest generation."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for history in slices:
        gone = history.first(Moment.GONE)
        said = [d.body for d in history.descriptions if d.from_ms <= at_ms]
        body = said[-1] if said else None
        if isinstance(body, ResourceSlice) and body.node == node and (gone is None or at_ms < gone.at_ms):
            pools.setdefault((body.driver, body.pool), []).append(body)
    newest = [
        body for found in pools.values() for body in found
        if body.generation == max(other.generation for other in found)
    ]  # fmt: skip
    return [device for body in newest for device in body.devices]
