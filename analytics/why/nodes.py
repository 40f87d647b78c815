"""The nodes of a cluster at an instant, counted so that ten thousand gangs can be tried on them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

from analytics.why.reason import Finding
from domain.placement import NODE_NAME, Placement

# Amounts by resource, in order of name.
Amounts: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """
    A node with GPUs as it stood; devices are whole units by resource name.

    Two are the same only if they are one object, so that what follows from it is found once.

    `free` is what nobody holds, also while the node takes no pods. `capacity` is what it would offer if all
    its devices were well. `others` and `others_free` are what it has of CPU (thousandths), memory (bytes)
    and the like: a resource that stands there not is unknown, and keeps nobody away. `others_at_most`: there
    are pods on it of which nobody tells what they ask, so that less may be free. Taints are written as
    `key=value:effect`.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    allocatable: Mapping[str, int]
    free: Mapping[str, int]
    schedulable: bool
    capacity: Mapping[str, int]
    others: Mapping[str, int] = field(default_factory=dict)
    others_free: Mapping[str, int] = field(default_factory=dict)
    others_at_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """
    Pods that ask alike, each `devices` and `others`, and that want the same of their nodes.

    `flavors` is where quota lets them go: one of these must hold for all of them; none is anywhere.
    """

    pods: int
    devices: Mapping[str, int]
    placement: Placement | None = None
    flavors: tuple[Placement, ...] = ()
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Pods that are wanted at once; `same_domain` is a label of nodes whose value they must share."""

    pod_sets: tuple[PodSet, ...]
    same_domain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What a workload holds on a node: `devices`, and what its pods there ask of all else."""

    workload_uid: str
    node: str
    devices: Mapping[str, int]
    others: Mapping[str, int] = field(default_factory=dict)


class Each(NamedTuple):
    """What one pod asks, so that pods which ask alike are counted once."""

    devices: Amounts
    others: Amounts

    @classmethod
    def of(cls, pods: PodSet) -> "Each":
        """What a pod of the set asks; what is 0 is left out."""
        return cls(amounts(pods.devices), amounts(pods.others))


class Ending(NamedTuple):
    """Workloads that might end together, and the seats that each node (by its place) gains by that."""

    uids: tuple[str, ...]
    gains: tuple[tuple[int, int], ...]


class View(NamedTuple):
    """
    How the nodes are looked at.

    `empty`: nobody holds anything and all devices are well. `everywhere`: nodes that take no pods count
    too. `others`: CPU, memory and the like are looked at, all but those that are `left_out`.
    """

    empty: bool = False
    everywhere: bool = False
    others: bool = True
    left_out: frozenset[str] = frozenset()


class Wish(NamedTuple):
    """What pods want of their node, and what the flavor adds to that."""

    placement: Placement
    flavor: Placement | None = None

    @property
    def keys(self) -> frozenset[str]:
        """The labels, and the node's name, that decide."""
        named = {rule.key for term in self.placement.terms for rule in term}
        return frozenset({*self.placement.labels, *named, *(self.flavor.labels if self.flavor else ())})


class Class(NamedTuple):
    """Nodes that say the same where it matters; `labels` are those that were looked at."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[str, ...]

    def takes(self, wish: Wish) -> bool:
        """Whether pods with that wish may stand there."""
        placement, flavor = wish
        if flavor is None:
            return placement.allows(self.name, self.labels, self.taints)
        return (
            all(self.labels.get(key) == value for key, value in flavor.labels.items())
            and Placement(
                labels=placement.labels,
                terms=placement.terms,
                tolerations=placement.tolerations + flavor.tolerations,
            ).allows(self.name, self.labels, self.taints)
        )  # fmt: skip


class Lot(NamedTuple):
    """Nodes that offer the same; `others` of which nothing is known stand there not."""

    schedulable: bool
    free: Amounts
    capacity: Amounts
    others_free: Amounts
    others: Amounts


@dataclass(frozen=True, slots=True)
class Division:
    """
    The nodes by what they say and offer: cells of a class and a lot, with the nodes in each.

    `lots` has for each class the lot of each of its nodes, `class_of` the class of each node.
    """

    classes: tuple[Class, ...]
    cells: Mapping[tuple[int, int], int]
    lots: Sequence[Sequence[int]]
    class_of: Sequence[int]


class NodeStock:
    """
    The nodes of one cluster, and who holds what on them.

    Nodes that are alike are counted, not walked through. Build it once and ask it for all that waits. What
    was counted for pods is kept for those that ask alike, until it is of more than `most_kept` kinds of pods
    and views: of 2,000 nodes that all differ so many took 25 MB.
    """

    def __init__(self, nodes: Iterable[Node], holds: Iterable[Hold] = (), *, most_kept: int = 1000) -> None:
        self._most_kept = most_kept
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.place_of: dict[str, int] = {node.name: place for place, node in enumerate(self.nodes)}
        self.holds: tuple[Hold, ...] = tuple(hold for hold in holds if hold.node in self.place_of)
        self.holds_of: dict[str, list[Hold]] = {}
        self.holds_on: dict[int, list[Hold]] = {}
        for hold in self.holds:
            self.holds_of.setdefault(hold.workload_uid, []).append(hold)
            self.holds_on.setdefault(self.place_of[hold.node], []).append(hold)
        numbers: dict[Lot, int] = {}
        self.lot_of: list[int] = [numbers.setdefault(_lot(node), len(numbers)) for node in self.nodes]
        self.lots: tuple[Lot, ...] = tuple(numbers)
        # What was found out for one gang and serves the next.
        self.open_classes: dict[tuple[str, frozenset[str]], frozenset[int]] = {}
        self.domain_seats: dict[tuple[Each, View, str, frozenset[str], str], Mapping[str | None, int]] = {}
        self.in_taints: dict[tuple[str, frozenset[str]], Sequence[str]] = {}
        self.away: dict[tuple[str, frozenset[str]], Sequence[str]] = {}
        self.lacking: dict[tuple[Each, frozenset[str]], Sequence[Mapping[str, int]]] = {}
        self.class_free: dict[tuple[str, View, frozenset[str]], list[tuple[int, int, int]]] = {}
        self.class_seats: dict[tuple[Each, View, frozenset[str]], list[int]] = {}
        self.endings: dict[Each, list[Ending]] = {}
        self.endings_in: dict[tuple[Each, frozenset[str], frozenset[int]], list[Ending]] = {}
        self.answers: dict[object, tuple[Finding, ...]] = {}
        self._seats: dict[tuple[Each, View], list[int]] = {}
        self._columns: dict[tuple[str, str], list[int | None]] = {}
        self._most_seats: dict[tuple[Each, View], int] = {}
        self._divisions: dict[frozenset[str], Division] = {}

    def make_room(self) -> None:
        """Forget what was counted for pods where it has become too much to keep; answers stay."""
        if len(self._seats) > self._most_kept:
            kept: tuple[dict[Any, Any], ...] = (
                self._seats, self._most_seats, self.class_seats, self.domain_seats, self.lacking,
                self.endings, self.endings_in,
            )  # fmt: skip
            for one in kept:
                one.clear()

    @cached_property
    def said(self) -> frozenset[tuple[str, str]]:
        """All labels of all nodes."""
        return frozenset(label for node in self.nodes for label in node.labels.items())

    def seats(self, each: Each, view: View) -> Sequence[int]:
        """How many such pods a node of each lot holds: `seats` for all of them, resource by resource."""
        found = self._seats.get((each, view))
        if found is None:
            found = [ANY if lot.schedulable or view.everywhere else 0 for lot in self.lots]
            for name, count in each.devices:
                column = self._column("capacity" if view.empty else "free", name, missing=0)
                found = [min(here, offered // count) for here, offered in zip(found, column, strict=True)]
            for name, count in each.others if view.others else ():
                if name not in view.left_out:
                    column = self._column(
                        "others" if view.empty else "others_free", name, missing=ANY * count
                    )
                    found = [min(here, offered // count) for here, offered in zip(found, column, strict=True)]
            self._seats[each, view] = found
        return found

    def most_seats(self, each: Each, view: View) -> int:
        """How many such pods the roomiest node holds."""
        key = (each, view)
        if key not in self._most_seats:
            self._most_seats[key] = max(self.seats(each, view), default=0)
        return self._most_seats[key]

    def _column(self, name: str, resource: str, *, missing: int) -> Sequence[int]:
        """What a node of each lot has of a resource; `missing` where it says nothing of it."""
        found = self._columns.get((name, resource))
        if found is None:
            found = [dict(getattr(lot, name)).get(resource) for lot in self.lots]
            self._columns[name, resource] = found
        return [missing if here is None else here for here in found]

    def division(self, keys: frozenset[str]) -> Division:
        """The nodes by the labels of these keys, their taints and what they offer."""
        found = self._divisions.get(keys)
        if found is None:
            found = self._divisions[keys] = self._divided(keys)
        return found

    def _divided(self, keys: frozenset[str]) -> Division:
        ordered = sorted(keys - {NODE_NAME})
        numbers: dict[tuple[str, tuple[str | None, ...], tuple[str, ...]], int] = {}
        class_of = []
        for node in self.nodes:
            said = tuple(node.labels.get(key) for key in ordered)
            name = node.name if NODE_NAME in keys else ""
            class_of.append(numbers.setdefault((name, said, node.taints), len(numbers)))
        classes = tuple(
            Class(
                name,
                {key: value for key, value in zip(ordered, said, strict=True) if value is not None},
                taints,
            )
            for name, said, taints in numbers
        )
        lots: list[list[int]] = [[] for _ in classes]
        for number, lot in zip(class_of, self.lot_of, strict=True):
            lots[number].append(lot)
        return Division(classes, Counter(zip(class_of, self.lot_of, strict=True)), lots, class_of)


def seats(lot: Lot, each: Each, view: View) -> int:
    """
    How many such pods a node of the lot holds: as many as there can be where they ask nothing.

    >>> lot = Lot(True, (("gpu", 7),), (("gpu", 8),), (("cpu", 9000),), ())
    >>> pod = Each((("gpu", 2),), (("cpu", 4000),))
    >>> seats(lot, pod, View()), seats(lot, pod, View(others=False)), seats(lot, pod, View(empty=True))
    (2, 3, 4)
    """
    if not (lot.schedulable or view.everywhere):
        return 0
    here = ANY
    room = dict(lot.capacity if view.empty else lot.free)
    for name, count in each.devices:
        here = min(here, room.get(name, 0) // count)
    if here and view.others and each.others:
        known = dict(lot.others if view.empty else lot.others_free)
        for name, count in each.others:
            if name in known and name not in view.left_out:
                here = min(here, known[name] // count)
    return max(here, 0)


# Room for pods that ask nothing that is counted.
ANY = 1 << 40


def amounts(asked: Mapping[str, int]) -> Amounts:
    """
    Amounts in a fixed order, without those of nothing.

    >>> amounts({"b": 1, "a": 2, "c": 0})
    (('a', 2), ('b', 1))
    """
    return tuple(sorted((name, count) for name, count in asked.items() if count > 0))


@lru_cache(maxsize=32_768)
def _lot(node: Node) -> Lot:
    return Lot(
        node.schedulable,
        amounts(node.free),
        amounts(node.capacity),
        # That nothing is left of a resource is known, unlike what stands there not.
        tuple(sorted(node.others_free.items())),
        tuple(sorted(node.others.items())),
    )
