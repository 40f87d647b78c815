"""Whether a whole gang finds room on the nodes, under this or that view of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from typing import TypeAlias

from analytics.fragmentation.places import written
from analytics.packing import Alike, Pods, fits_together, mixes
from analytics.why.nodes import ANY, Each, Gang, Lot, NodeStock, View, Wish, seats
from domain.placement import Placement

# Unlike pods are a search: one that takes more steps, or has more flavors to combine, is given up.
MOST_STEPS = 50_000
_MOST_CHOICES = 256

# What is different from the stock: nodes by their place in it, with what they offer instead.
Changes = Mapping[int, Lot]
_NOTHING: Changes = {}


@dataclass(frozen=True, slots=True)
class Part:
    """Pods of a gang that are alike: any one of the wishes must hold for all of them."""

    pods: int
    each: Each
    wishes: tuple[Wish, ...]
    # Two parts with equal names are alike.
    name: tuple[str, ...]

    def wishing(self, wishes: tuple[Wish, ...]) -> "Part":
        """The same pods with other wishes."""
        return replace(self, wishes=wishes, name=tuple(map(_name, wishes)))


def _name(wish: Wish) -> str:
    return f"{written(wish.placement)}|{written(wish.flavor)}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A gang as it is searched for; `keys` are the labels that its parts name."""

    parts: tuple[Part, ...]
    domain: str
    keys: frozenset[str]

    @classmethod
    def of(cls, gang: Gang) -> "Asked":
        """The gang with equal pods put together, and without sets of no pods."""
        counted: dict[tuple[Each, tuple[str, ...], int], Part] = {}
        for number, pods in enumerate(gang.pod_sets):
            if pods.pods <= 0:
                continue
            own = pods.placement or _UNBOUND
            wishes = tuple(Wish(own, flavor) for flavor in pods.flavors) or (Wish(own),)
            each, name = Each.of(pods), tuple(map(_name, wishes))
            # Each set may take another of several flavors.
            key = each, name, number if len(wishes) > 1 else 0
            before = counted[key].pods if key in counted else 0
            counted[key] = Part(before + pods.pods, each, wishes, name)
        parts = tuple(counted.values())
        keys = {key for part in parts for wish in part.wishes for key in wish.keys}
        return cls(parts, gang.same_domain, frozenset(keys | ({gang.same_domain} - {""})))

    @property
    def name(self) -> object:
        """Equal for gangs to which every answer is the same."""
        return self.domain, tuple((part.pods, part.each, part.name) for part in self.parts)

    @property
    def is_plain(self) -> bool:
        """Whether seats decide alone: like pods, with one wish, wherever they stand."""
        return len(self.parts) == 1 and len(self.parts[0].wishes) == 1 and not self.domain

    def wishing(self, change: Callable[[Wish], Wish]) -> "Asked":
        """The gang after a change of what its pods want."""
        parts = (part.wishing(tuple(map(change, part.wishes))) for part in self.parts)
        return replace(self, parts=tuple(parts))


_UNBOUND = Placement()


def fits(asked: Asked, stock: NodeStock, view: View, changes: Changes = _NOTHING) -> bool | None:
    """
    Whether all pods find room at the same time; None where the search was given up.

    Exact for pods that are alike, by counting; for unlike ones up to `MOST_STEPS`.

    Args:
        asked: the gang.
        stock: the nodes.
        view: how they are looked at.
        changes: nodes that offer something else.
    """
    large = [
        [seats_by_domain(part, number, asked=asked, stock=stock, view=view, changes=changes)
         for number in range(len(part.wishes))]
        for part in asked.parts
    ]  # fmt: skip
    given_up = False
    for domain in _large_enough(asked, large):
        answer = _fits_in(domain, large, asked=asked, stock=stock, view=view, changes=changes)
        if answer:
            return True
        given_up = given_up or answer is None
    return None if given_up else False


# By the value of the label that the pods must share; None where there is no such label.
Seats: TypeAlias = Mapping[str | None, int]


def _large_enough(asked: Asked, large: Sequence[Sequence[Seats]]) -> list[str | None]:
    """Domains in which each part by itself finds room; None stands for all nodes together."""
    if not asked.parts:
        return [None]
    of_parts = [
        {domain for seats in of_wishes for domain, found in seats.items() if found >= part.pods}
        for part, of_wishes in zip(asked.parts, large, strict=True)
    ]
    found = set.intersection(*of_parts)
    return sorted(found, key=lambda domain: domain or "")


def opened(part: Part, number: int, *, asked: Asked, stock: NodeStock) -> frozenset[int]:
    """Classes of nodes on which pods of a part may stand under one of their wishes."""
    key = (part.name[number], asked.keys)
    found = stock.open_classes.get(key)
    if found is None:
        classes = stock.division(asked.keys).classes
        wish = part.wishes[number]
        found = stock.open_classes[key] = frozenset(n for n, one in enumerate(classes) if one.takes(wish))
    return found


def seats_by_domain(
    part: Part, number: int, *, asked: Asked, stock: NodeStock, view: View, changes: Changes = _NOTHING
) -> Seats:
    """How many pods of the part find room under one of their wishes, if nothing else were placed."""
    key = (part.each, view, part.name[number], asked.keys, asked.domain)
    found = stock.domain_seats.get(key)
    if found is None:
        sums: dict[str | None, int] = {}
        on_class = class_seats(part.each, view, asked=asked, stock=stock)
        for one in opened(part, number, asked=asked, stock=stock):
            domain = domain_of(one, asked=asked, stock=stock)
            if domain is not None or not asked.domain:
                sums[domain] = sums.get(domain, 0) + on_class[one]
        found = stock.domain_seats[key] = sums
    if not changes:
        return found
    sums = dict(found)
    class_of = stock.division(asked.keys).class_of
    before = stock.seats(part.each, view)
    may_use = opened(part, number, asked=asked, stock=stock)
    for place, lot in changes.items():
        if class_of[place] in may_use:
            domain = domain_of(class_of[place], asked=asked, stock=stock)
            if domain is not None or not asked.domain:
                more = seats(lot, part.each, view) - before[stock.lot_of[place]]
                sums[domain] = sums.get(domain, 0) + more
    return sums


def domain_of(number: int, *, asked: Asked, stock: NodeStock) -> str | None:
    """The value of the label that pods must share on a class of nodes; None without one."""
    return stock.division(asked.keys).classes[number].labels.get(asked.domain) if asked.domain else None


def class_seats(each: Each, view: View, *, asked: Asked, stock: NodeStock) -> Sequence[int]:
    """How many such pods the nodes of each class hold."""
    key = (each, view, asked.keys)
    found = stock.class_seats.get(key)
    if found is None:
        lot_seats = stock.seats(each, view).__getitem__
        found = [sum(map(lot_seats, lots)) for lots in stock.division(asked.keys).lots]
        stock.class_seats[key] = found
    return found


def _fits_in(
    domain: str | None,
    large: Sequence[Sequence[Seats]],
    *,
    asked: Asked,
    stock: NodeStock,
    view: View,
    changes: Changes,
) -> bool | None:
    """Whether the parts, each of which has room by itself, have room beside each other."""
    if len(asked.parts) <= 1:
        return True
    choices = [
        [number for number, found in enumerate(of_wishes) if found.get(domain, 0) >= part.pods]
        for part, of_wishes in zip(asked.parts, large, strict=True)
    ]
    if prod(map(len, choices)) > _MOST_CHOICES:
        return None
    if _stand_apart(asked, [[of_wishes[n].get(domain, 0) for n in chosen]
                            for of_wishes, chosen in zip(large, choices, strict=True)],
                    stock=stock, view=view, changes=changes):  # fmt: skip
        return True
    given_up = False
    for choice in product(*choices):
        may_use = [
            opened(part, number, asked=asked, stock=stock)
            for part, number in zip(asked.parts, choice, strict=True)
        ]
        if domain is not None:
            may_use = [
                frozenset(n for n in one if domain_of(n, asked=asked, stock=stock) == domain)
                for one in may_use
            ]
        answer = _packs(asked, may_use, stock=stock, view=view, changes=changes)
        if answer:
            return True
        given_up = given_up or answer is None
    return None if given_up else False


def _stand_apart(
    asked: Asked, room: Sequence[Sequence[int]], *, stock: NodeStock, view: View, changes: Changes
) -> bool:
    """
    Whether there is so much room that the parts cannot be in each other's way.

    Placed one part after the other, those before stand on no more nodes than they have pods. If the other
    nodes hold the next part even where those are the roomiest ones, all find room.
    """
    before = 0
    for part, found in sorted(
        zip(asked.parts, room, strict=True), key=lambda one: one[0].each.devices, reverse=True
    ):
        roomiest = max(
            stock.most_seats(part.each, view), *(seats(lot, part.each, view) for lot in changes.values()), 0
        )
        if max(found) - before * roomiest < part.pods:
            return False
        before += part.pods
    return True


def _packs(
    asked: Asked, may_use: Sequence[frozenset[int]], *, stock: NodeStock, view: View, changes: Changes
) -> bool | None:
    division = stock.division(asked.keys)
    lots = [*stock.lots, *changes.values()]
    cells = dict(division.cells)
    for new, place in enumerate(changes, start=len(stock.lots)):
        cells[division.class_of[place], stock.lot_of[place]] -= 1
        cells[division.class_of[place], new] = 1
    room_for = [
        [*stock.seats(part.each, view), *(seats(lot, part.each, view) for lot in changes.values())]
        for part in asked.parts
    ]
    wanted = tuple(part.pods for part in asked.parts)
    counted: Counter[tuple[int, Pods]] = Counter()
    for (number, lot), nodes in cells.items():
        most = tuple(
            min(pods, here[lot]) if number in one else 0
            for pods, here, one in zip(wanted, room_for, may_use, strict=True)
        )
        if nodes and any(most):
            counted[lot, most] += nodes
    for name in {name for part in asked.parts for name, _ in part.each.devices}:
        needed = sum(part.pods * dict(part.each.devices).get(name, 0) for part in asked.parts)
        if needed > sum(nodes * _devices(lots[lot], name, view) for (lot, _), nodes in counted.items()):
            return False
    alike = [
        Alike(nodes, most, partial(_mixes, asked, lots[lot], most, view))
        for (lot, most), nodes in counted.items()
    ]
    return fits_together(alike, wanted, most_steps=MOST_STEPS)


def _devices(lot: Lot, name: str, view: View) -> int:
    return dict(lot.capacity if view.empty else lot.free).get(name, 0)


def _mixes(asked: Asked, lot: Lot, most: Pods, view: View) -> tuple[Pods, ...]:
    """The mixes of pods that a node of the lot holds."""
    if sum(map(bool, most)) == 1:
        return (most,)
    room = dict(lot.capacity if view.empty else lot.free)
    parts = [dict(part.each.devices) for part in asked.parts]
    if view.others:
        known = dict(lot.others if view.empty else lot.others_free)
        for part, one in zip(parts, asked.parts, strict=True):
            for name, count in one.each.others:
                part[name] = count
                room[name] = ANY if name in view.left_out else known.get(name, ANY)
    return mixes(room, parts, most)
