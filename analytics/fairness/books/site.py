"""
The site over time: quotas, cohorts and flavors, and the nodes, as they were at each instant.

Quotas change seldom, so each change makes a new `Quotas`; nodes change often and are kept apart.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from analytics.history import History
from analytics.offers import Offer, offers
from domain import objects
from domain.facts import Moment, ObjectKind
from domain.quantity import MICRO_PER_GPU, Quota, QuotaKind, card_share

Resources: TypeAlias = Mapping[str, int]
Name: TypeAlias = tuple[str, str]

# Kinds whose history is the site's.
SITE_KINDS = (
    ObjectKind.NODE,
    ObjectKind.CLUSTER_QUEUE,
    ObjectKind.COHORT,
    ObjectKind.RESOURCE_FLAVOR,
    ObjectKind.LOCAL_QUEUE,
    ObjectKind.VOLCANO_QUEUE,
    ObjectKind.RESOURCE_QUOTA,
    ObjectKind.KAI_QUEUE,
    ObjectKind.ELASTIC_QUOTA,
    ObjectKind.RESOURCE_SLICE,
)
_FIELDS = {
    ObjectKind.CLUSTER_QUEUE: "cluster_queues",
    ObjectKind.COHORT: "cohorts",
    ObjectKind.RESOURCE_FLAVOR: "flavors",
    ObjectKind.LOCAL_QUEUE: "local_queues",
    ObjectKind.VOLCANO_QUEUE: "volcano_queues",
    ObjectKind.RESOURCE_QUOTA: "resource_quotas",
    ObjectKind.KAI_QUEUE: "kai_queues",
    ObjectKind.ELASTIC_QUOTA: "elastic_quotas",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Who may have what from `from_ms` on; what has a namespace by namespace and name."""

    from_ms: int = 0
    cluster_queues: Mapping[str, objects.ClusterQueue] = field(default_factory=dict)
    cohorts: Mapping[str, objects.Cohort] = field(default_factory=dict)
    flavors: Mapping[str, objects.ResourceFlavor] = field(default_factory=dict)
    local_queues: Mapping[Name, objects.LocalQueue] = field(default_factory=dict)
    volcano_queues: Mapping[str, objects.VolcanoQueue] = field(default_factory=dict)
    resource_quotas: Mapping[Name, objects.ResourceQuota] = field(default_factory=dict)
    kai_queues: Mapping[str, objects.KaiQueue] = field(default_factory=dict)
    elastic_quotas: Mapping[Name, objects.ElasticQuota] = field(default_factory=dict)

    def elastic(self, namespace: str) -> objects.ElasticQuota | None:
        """The ElasticQuota of a namespace; scheduler-plugins takes one, the first by name."""
        found = sorted(name for name in self.elastic_quotas if name[0] == namespace)
        return self.elastic_quotas[found[0]] if found else None

    @property
    def elastic_namespaces(self) -> list[str]:
        """Namespaces with an ElasticQuota on GPUs."""
        return sorted({home for (home, _), one in self.elastic_quotas.items() if one.least or one.most})

    def hard(self, namespace: str) -> dict[str, Quota]:
        """GPU requests that a namespace may make; of several ResourceQuotas the tightest holds."""
        found: dict[str, Quota] = {}
        for (home, _), quota in self.resource_quotas.items():
            for resource, hard in quota.hard.items() if home == namespace else ():
                if resource not in found or hard.milli < found[resource].milli:
                    found[resource] = hard
        return found

    @property
    def limited_namespaces(self) -> list[str]:
        """Namespaces with a ResourceQuota on GPUs."""
        return sorted({home for (home, _), quota in self.resource_quotas.items() if quota.hard})


class NodeTurn(NamedTuple):
    """A node from `at_ms` on; `model`, `product` and what it offers are empty once it is gone."""

    at_ms: int
    node: str
    labels: Mapping[str, str]
    model: str
    replicas: int
    allocatable: Resources
    schedulable: bool
    product: str = ""
    here: bool = True


@dataclass(frozen=True, slots=True)
class Selector:
    """Which nodes belong to a pool: those with all these labels, or those of one GPU model."""

    labels: tuple[tuple[str, str], ...] | None = None
    model: str = ""

    def takes(self, node: NodeTurn) -> bool:
        """Whether the node belongs to the pool."""
        if self.labels is None:
            return node.model == self.model and bool(node.allocatable)
        return all(node.labels.get(name) == value for name, value in self.labels)

    @classmethod
    def of_flavor(cls, flavor: objects.ResourceFlavor | None) -> "Selector":
        """The nodes of a flavor; one that does not exist has none."""
        return cls(labels=tuple(sorted(flavor.node_labels.items()))) if flavor else cls(model="no flavor")


@dataclass(slots=True, kw_only=True)
class Room:
    """What the nodes of a pool ever offered, growing: the largest node, and all of them together."""

    at_ms: list[int] = field(default_factory=list)
    largest: list[Resources] = field(default_factory=list)
    total: list[Resources] = field(default_factory=list)

    def fits_from(self, each: Resources, total: Resources) -> int | None:
        """
        Since when pods of this size could be there; None while no node was large enough.

        Where no node was ever seen nothing is known against it: then it always could.
        """
        if not self.at_ms:
            return 0

        def large_enough(position: int) -> bool:
            largest, offered = self.largest[position], self.total[position]
            return all(largest.get(name, 0) >= count for name, count in each.items()) and all(
                offered.get(name, 0) >= count for name, count in total.items()
            )

        # What was ever offered only grows, so the answers are no, ..., no, yes, ..., yes.
        position = bisect_left(range(len(self.at_ms)), x=True, key=large_enough)
        return self.at_ms[position] if position < len(self.at_ms) else None

    def offered(self, resources: Iterable[str], at_ms: int) -> int:
        """Units of these resources that all nodes seen by then offered together."""
        position = bisect_right(self.at_ms, at_ms)
        return sum(self.total[position - 1].get(name, 0) for name in resources) if position else 0


@dataclass(slots=True)
class Site:
    """The whole history of a cluster's quotas and nodes."""

    cluster: str
    versions: list[Quotas]
    nodes: list[NodeTurn]
    _rooms: dict[Selector, Room] = field(default_factory=dict)
    _models: dict[str, int] = field(default_factory=dict)
    _model_names: dict[Selector, list[tuple[int, str]]] = field(default_factory=dict)
    _by_node: dict[str, list[NodeTurn]] = field(default_factory=dict)
    _units: dict[tuple[Selector, str], tuple[int, Fraction | None] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: str, histories: Iterable[History]) -> "Site":
        """The site of these objects."""
        known = list(histories)
        machines = [(h, offered) for h, offered in offers(known) if h.descriptions]
        everybody = [machine for machine, _ in machines]
        nodes = sorted(
            (
                turn
                for h, offered in machines
                for turn in _node_turns(h, offered)
                if turn.here or not _replaced(h, everybody)
            ),
            key=lambda turn: (turn.at_ms, turn.here, turn.node),
        )
        site = cls(cluster, versions=_versions(known), nodes=nodes)
        for turn in nodes:
            site._by_node.setdefault(turn.node, []).append(turn)
        return site

    def quotas_at(self, at_ms: int) -> Quotas:
        """The quotas at that instant."""
        return self.versions[max(bisect_right(self.versions, at_ms, key=lambda v: v.from_ms) - 1, 0)]

    def node_at(self, node: str, at_ms: int) -> NodeTurn | None:
        """A node at that instant; one that is gone as it was last, None for one not yet seen."""
        turns = self._by_node.get(node, [])
        position = bisect_right(turns, at_ms, key=lambda turn: turn.at_ms)
        return next((turn for turn in reversed(turns[:position]) if turn.here), None)

    def room(self, selector: Selector) -> Room:
        """What the nodes of a pool offered by when."""
        if selector not in self._rooms:
            self._rooms[selector] = _room(turn for turn in self.nodes if selector.takes(turn))
        return self._rooms[selector]

    def models(self) -> dict[str, int]:
        """GPU models with the instant at which the first node of each was seen."""
        if not self._models:
            for turn in self.nodes:
                if turn.allocatable:
                    self._models.setdefault(turn.model, turn.at_ms)
        return self._models

    def models_of(self, selector: Selector, at_ms: int) -> str:
        """The GPU model of a pool's nodes seen by then; several are named together."""
        if selector not in self._model_names:
            names: list[tuple[int, str]] = []
            for turn in self.nodes:
                if (
                    turn.allocatable
                    and selector.takes(turn)
                    and turn.model not in {name for _, name in names}
                ):
                    names.append((turn.at_ms, turn.model))
            self._model_names[selector] = names
        return ", ".join(sorted(name for since_ms, name in self._model_names[selector] if since_ms <= at_ms))

    def unit(self, selector: Selector, resource: str, at_ms: int) -> Fraction | None:
        """The part of a card that a unit of a resource is, by the first node of a pool to offer it."""
        if (selector, resource) not in self._units:
            first = next((t for t in self.nodes if resource in t.allocatable and selector.takes(t)), None)
            self._units[selector, resource] = first and (
                first.at_ms,
                card_share(resource, product=first.product or first.model, replicas=first.replicas),
            )
        told = self._units[selector, resource]
        return told[1] if told and told[0] <= at_ms else card_share(resource)

    def micro(self, quota: Quota, *, resource: str, selector: Selector, at_ms: int) -> int | None:
        """A quota in micro-GPU; None where it is not a number, 0 where nobody knows its unit."""
        if quota.kind is not QuotaKind.NUMBER:
            return None
        unit = self.unit(selector, resource, at_ms) or Fraction(0)
        # To the nearest, as what nodes offer.
        return math.floor(quota.milli * unit * MICRO_PER_GPU / 1000 + Fraction(1, 2))


def _node_turns(history: History, offered: Iterable[Offer]) -> Iterable[NodeTurn]:
    """A node's changes, then its end; what changes nothing is left out."""
    gone = history.first(Moment.GONE)
    before: NodeTurn | None = None
    for offer in offered:
        turn = NodeTurn(
            at_ms=offer.at_ms,
            node=history.name,
            labels=offer.body.labels,
            model=offer.model,
            replicas=offer.replicas,
            allocatable=offer.allocatable,
            schedulable=offer.schedulable,
            product=offer.product,
        )
        if before is None or turn[1:] != before[1:]:
            yield turn
        before = turn
    if gone is not None:
        yield NodeTurn(gone.at_ms, history.name, {}, "", 1, {}, schedulable=False, here=False)


def _replaced(history: History, machines: Iterable[History]) -> bool:
    """Whether another node of that name stood there already when this one was seen to be gone."""
    gone = history.first(Moment.GONE)
    return gone is not None and any(
        other.name == history.name and history.created_ms < other.created_ms <= gone.at_ms
        for other in machines
    )


def _versions(histories: Iterable[History]) -> list[Quotas]:
    turns = sorted(
        (turn for h in histories if h.kind in _FIELDS for turn in _quota_turns(h)),
        key=lambda turn: (turn[0], turn[4] is not None, turn[2]),
    )
    versions = [Quotas()]
    owners: dict[tuple[str, object], str] = {}
    for at_ms, kind, name, uid, body in turns:
        where, newest = _FIELDS[kind], versions[-1]
        key = (
            name
            if kind in (ObjectKind.LOCAL_QUEUE, ObjectKind.RESOURCE_QUOTA, ObjectKind.ELASTIC_QUOTA)
            else name[1]
        )
        known = dict(getattr(newest, where))
        if body is not None:
            known[key], owners[where, key] = body, uid
        elif owners.get((where, key)) == uid:  # else another object has its name by now
            del known[key]
        if known == getattr(newest, where):
            continue
        if newest.from_ms == at_ms and len(versions) > 1:
            versions.pop()
        versions.append(replace(newest, from_ms=at_ms, **{where: known}))
    return versions


def _quota_turns(history: History) -> Iterable[tuple[int, ObjectKind, Name, str, objects.Body | None]]:
    name = (history.namespace, history.name)
    for described in sorted(history.descriptions, key=lambda each: each.from_ms):
        yield described.from_ms, history.kind, name, history.uid, described.body
    gone = history.first(Moment.GONE)
    if gone is not None:
        yield gone.at_ms, history.kind, name, history.uid, None


def _room(turns: Iterable[NodeTurn]) -> Room:
    room = Room()
    best: dict[str, dict[str, int]] = {}
    for turn in turns:
        node = best.setdefault(turn.node, {})
        grown = {name: count for name, count in turn.allocatable.items() if count > node.get(name, 0)}
        if not grown:
            continue
        total = dict(room.total[-1]) if room.total else {}
        for name, count in grown.items():
            total[name] = total.get(name, 0) + count - node.get(name, 0)
        node |= grown
        largest = dict(room.largest[-1]) if room.largest else {}
        largest |= {name: max(count, largest.get(name, 0)) for name, count in grown.items()}
        room.at_ms.append(turn.at_ms)
        room.largest.append(largest)
        room.total.append(total)
    return room
