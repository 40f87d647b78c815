"""The numbers beside an answer about places: what is asked, what is free, and what each node lacks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from analytics.why.barriers import everything_borne
from analytics.why.nodes import Class, Each, NodeStock, View, Wish
from analytics.why.reason import Value
from analytics.why.search import Asked, Part, opened, seats_by_domain

_NOW: Final = View()


def told_nodes(asked: Asked, stock: NodeStock) -> dict[str, Value]:
    """
    How many nodes there are, and how many of them keep the largest pods away, each by its first cause.

    Keys are `nodes` (all of them) and `nodes_` with `flavor`, `selector`, `affinity`, `taint`,
    `unavailable`, `without_device`, `full`, `other_resource` or `fitting`; what is 0 is left out.
    """
    part = max(asked.parts, key=lambda one: (one.each.devices, one.pods))
    wish = part.wishes[0]
    counted: dict[str, int] = {}
    away = _away(wish, part.name[0], asked=asked, stock=stock)
    for cause, lacks in zip(away, _lacking(part.each, asked=asked, stock=stock), strict=True):
        for lack, nodes in lacks.items():
            counted[f"nodes_{cause or lack}"] = counted.get(f"nodes_{cause or lack}", 0) + nodes
    return {"nodes": len(stock.nodes), **dict(sorted(counted.items()))}


def _away(wish: Wish, name: str, *, asked: Asked, stock: NodeStock) -> Sequence[str]:
    """For each class of nodes what keeps pods of that wish from it; empty where nothing does."""
    key = (name, asked.keys)
    if key not in stock.away:
        stock.away[key] = [_kept_away(one, wish) for one in stock.division(asked.keys).classes]
    return stock.away[key]


def _lacking(each: Each, *, asked: Asked, stock: NodeStock) -> Sequence[Mapping[str, int]]:
    """For each class of nodes how many of them lack what."""
    key = (each, asked.keys)
    if key not in stock.lacking:
        lacks = _lacks(stock, each).__getitem__
        stock.lacking[key] = [Counter(map(lacks, lots)) for lots in stock.division(asked.keys).lots]
    return stock.lacking[key]


def room_of(asked: Asked, stock: NodeStock, view: View = _NOW) -> dict[str, Value] | None:
    """
    What is asked of the scarcest GPU resource, and what of it is free where its pods may stand.

    Returns:
        `resource`; `asked` and `free` in devices; `missing`, what is not free even in sum; `largest_free`, on
        one node; `usable_nodes`, on which the pods may stand; `pods`, and `fits_pods`, how many of them find
        room when each set of pods is tried alone. None where no GPU is asked.
    """
    found = [
        _of_resource(resource, parts, asked=asked, stock=stock, view=view)
        for resource, parts in _groups(asked)
    ]
    if not found:
        return None
    told = max(found, key=lambda one: (one["missing"], one["asked"]))
    return {**told, "pods": sum(p.pods for p in asked.parts), "fits_pods": _fitting(asked, stock, view)}


def _groups(asked: Asked) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Each resource with all parts that ask it, and with each of them alone."""
    names = {name: None for part in asked.parts for name, _ in part.each.devices}
    for name in names:
        asking = tuple(part for part in asked.parts if dict(part.each.devices).get(name))
        yield name, asking
        if len(asking) > 1:
            for part in asking:
                yield name, (part,)


def _of_resource(
    resource: str, parts: tuple[Part, ...], *, asked: Asked, stock: NodeStock, view: View
) -> dict[str, int | str]:
    wanted = sum(part.pods * dict(part.each.devices)[resource] for part in parts)
    by_class = _free_by_class(resource, view, asked=asked, stock=stock)
    rooms = [
        (
            sum(by_class[number][0] for number in may_use),
            max((by_class[number][1] for number in may_use), default=0),
            sum(by_class[number][2] for number in may_use),
        )
        for may_use in _places(parts, asked=asked, stock=stock)
    ]
    free, largest, usable = max(rooms)
    return {
        "resource": resource,
        "asked": wanted,
        "free": free,
        "missing": max(wanted - free, 0),
        "largest_free": largest,
        "usable_nodes": usable,
    }


def _places(parts: tuple[Part, ...], *, asked: Asked, stock: NodeStock) -> Iterator[frozenset[int]]:
    """Where the parts may stand: of one part under each of its flavors, of several all together."""
    each = [
        opened(part, number, asked=asked, stock=stock) for part in parts for number in range(len(part.wishes))
    ]
    if len(parts) == 1:
        yield from each
    else:
        yield frozenset().union(*each)


def _fitting(asked: Asked, stock: NodeStock, view: View) -> int:
    """How many pods find room in the best domain, each part alone."""
    found: dict[str | None, int] = {}
    for part in asked.parts:
        best: dict[str | None, int] = {}
        for number in range(len(part.wishes)):
            seats = seats_by_domain(part, number, asked=asked, stock=stock, view=view)
            for domain, here in seats.items():
                best[domain] = max(best.get(domain, 0), min(part.pods, here))
        for domain, here in best.items():
            found[domain] = found.get(domain, 0) + here
    return max(found.values(), default=0)


def _free_by_class(
    resource: str, view: View, *, asked: Asked, stock: NodeStock
) -> Sequence[tuple[int, int, int]]:
    """For each class: free devices on all its nodes that count, on the freest one, and how many count."""
    key = (resource, view, asked.keys)
    found = stock.class_free.get(key)
    if found is None:
        division = stock.division(asked.keys)
        found = [(0, 0, 0) for _ in division.classes]
        for (number, lot), nodes in division.cells.items():
            one = stock.lots[lot]
            if view.everywhere or one.schedulable:
                here = dict(one.capacity if view.empty else one.free).get(resource, 0)
                free, largest, usable = found[number]
                found[number] = free + nodes * here, max(largest, here), usable + nodes
        stock.class_free[key] = found
    return found


def _kept_away(one: Class, wish: Wish) -> str:
    """What of a wish keeps its pods from nodes of a class; empty where nothing does."""
    if one.takes(wish):
        return ""
    borne = everything_borne(wish)
    if one.takes(borne):
        return "taint"
    flavor = wish.flavor
    if flavor and any(one.labels.get(key) != value for key, value in flavor.labels.items()):
        return "flavor"
    selected = wish.placement.labels.items()
    return "selector" if any(one.labels.get(key) != value for key, value in selected) else "affinity"


def _lacks(stock: NodeStock, each: Each) -> Sequence[str]:
    """What a node of each lot lacks for such a pod, whatever it says of itself."""
    devices = Each(each.devices, ())
    return [
        "unavailable" if not lot.schedulable
        else "without_device" if not ever
        else "full" if not free
        else "fitting" if here
        else "other_resource"
        for lot, ever, free, here in zip(
            stock.lots,
            stock.seats(devices, View(empty=True, everywhere=True)),
            stock.seats(devices, View(everywhere=True)),
            stock.seats(each, _NOW),
            strict=True,
        )
    ]  # fmt: skip
