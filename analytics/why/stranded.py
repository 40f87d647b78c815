"""Where GPUs stand free beside too little of something else: the numbers of one node that shows it."""

from collections.abc import Iterator, Sequence
from typing import Final

from analytics.why.nodes import Amounts, Each, NodeStock, View
from analytics.why.reason import Value
from analytics.why.search import Asked, Part, opened
from domain.quantity import CPU

_NOW: Final = View()
_HARDWARE: Final = View(empty=True, everywhere=True)


def stranded(asked: Asked, stock: NodeStock, names: Sequence[str]) -> dict[str, Value]:
    """
    The node on which most pods of the gang find their devices and lack one of these resources.

    Returns:
        `node`; `device` and `free_devices`, what is free there of it; `short_of`, the resource; `asked_each`
        of it by a pod; `short_has`, what the node has for pods; `short_free`, or `short_free_at_most` where
        nobody tells of some pods on the node. Amounts are in units of the resource. None of it where no node
        shows it by itself.
    """
    for part in _largest_first(asked):
        place = _place(part, asked, stock, names)
        if place is not None:
            node = stock.nodes[place]
            device = part.each.devices[0][0]
            name, count = min(
                ((name, count) for name, count in _among(part.each.others, names) if name in node.others),
                key=lambda one: node.others_free[one[0]] // one[1],
            )
            return {
                "node": node.name,
                "device": device,
                "free_devices": node.free.get(device, 0),
                "short_of": name,
                "short_free_at_most" if node.others_at_most else "short_free": units(
                    name, node.others_free[name]
                ),
                "short_has": units(name, node.others[name]),
                "asked_each": units(name, count),
            }
    return {}


def never_enough(asked: Asked, stock: NodeStock, names: Sequence[str]) -> dict[str, Value]:
    """
    The resource of which no node with such devices ever has as much as one pod asks.

    Returns:
        `short_of`, `asked_each` and `largest_has`, what the largest of those nodes has, in units of the
        resource; none of it where each pod by itself would fit.
    """
    for part in _largest_first(asked):
        room = stock.seats(Each(part.each.devices, ()), _HARDWARE)
        may_use = _may_use(part, asked, stock)
        class_of = stock.division(asked.keys).class_of
        nodes = [
            node
            for place, node in enumerate(stock.nodes)
            if class_of[place] in may_use and room[stock.lot_of[place]]
        ]
        for name, count in _among(part.each.others, names):
            largest = max((node.others.get(name, count) for node in nodes), default=count)
            if largest < count:
                return {
                    "short_of": name,
                    "asked_each": units(name, count),
                    "largest_has": units(name, largest),
                }
    return {}


def units(name: str, amount: int) -> int | float:
    """
    An amount in units of its resource; of CPU it is counted in thousandths.

    >>> units("cpu", 1500), units("cpu", 2000), units("memory", 1500)
    (1.5, 2, 1500)
    """
    if name != CPU:
        return amount
    return amount / 1000 if amount % 1000 else amount // 1000


def _largest_first(asked: Asked) -> Iterator[Part]:
    parts = (part for part in asked.parts if part.each.devices and part.each.others)
    yield from sorted(parts, key=lambda one: (one.each.devices, one.pods), reverse=True)


def _place(part: Part, asked: Asked, stock: NodeStock, names: Sequence[str]) -> int | None:
    """The node that lacks room for most pods of a part, though it has their devices; the first of equals."""
    with_devices = stock.seats(Each(part.each.devices, _without(part.each.others, names)), _NOW)
    with_all = stock.seats(part.each, _NOW)
    may_use = _may_use(part, asked, stock)
    class_of = stock.division(asked.keys).class_of
    best, found = 0, None
    for place, lot in enumerate(stock.lot_of):
        if class_of[place] in may_use:
            lost = min(with_devices[lot], part.pods) - min(with_all[lot], part.pods)
            if lost > best:
                best, found = lost, place
    return found


def _may_use(part: Part, asked: Asked, stock: NodeStock) -> frozenset[int]:
    return frozenset().union(
        *(opened(part, number, asked=asked, stock=stock) for number in range(len(part.wishes)))
    )


def _among(others: Amounts, names: Sequence[str]) -> Iterator[tuple[str, int]]:
    yield from ((name, count) for name, count in others if name in names)


def _without(others: Amounts, names: Sequence[str]) -> Amounts:
    return tuple(one for one in others if one[0] not in names)


def resources_of(asked: Asked) -> list[str]:
    """What the gang asks beside devices, by name."""
    return sorted({name for part in asked.parts for name, _ in part.each.others})
