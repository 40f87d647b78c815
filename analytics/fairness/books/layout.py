"""
Which pools the quotas make: a cohort's queues in one flavor, else all others on one GPU model.

Entities outside Kueue are queues of Volcano and KAI, `namespace/NAME` with an ElasticQuota or a
ResourceQuota, and `team/NAME` with none of them. They share the pool of their cluster and model,
`CLUSTER/MODEL`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from analytics.fairness.books.site import Quotas, Selector, Site
from analytics.fairness.entities import CohortTree, Entity
from domain import objects
from domain.quantity import Quota, QuotaKind, is_gpu_resource

UNLABELLED = "unlabelled"
_VOLCANO_ROOT = "root"
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """
    A pool without what is held in it: its tree of entities, and which nodes and resources it has.

    `covers` are the resources that it shares out, None for all. In `spread` stand the entities
    whose quota is one for all models of the cluster, so that this pool has a part of it only.
    `grows`: teams without any quota may come in. `offered`: units of all resources that its nodes ever
    offered together. `names` are those of the entities in its tree.
    """

    pool: str
    tree: CohortTree
    hard_quota: bool
    selector: Selector
    covers: frozenset[str] | None = None
    spread: frozenset[str] = field(default_factory=frozenset)
    grows: bool = False
    offered: int = 0
    names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(entity.name for entity in self.tree.members()))

    def shares(self, resource: str) -> bool:
        """Whether the pool shares out that resource."""
        return self.covers is None or resource in self.covers


def kueue_pool(quotas: Quotas, queue: str, flavor: str) -> str:
    """
    The pool of a ClusterQueue in a flavor: named after the root of its cohort, else after itself.

    >>> kueue_pool(Quotas(), "main", "a100")
    'main/a100'
    """
    cohort = quotas.cluster_queues[queue].cohort if queue in quotas.cluster_queues else ""
    return f"{root_of(quotas, cohort) if cohort else queue}/{flavor}"


def plain_pool(cluster: str, model: str) -> str:
    """The pool of what is under no ClusterQueue."""
    return f"{cluster}/{model or UNLABELLED}"


def layouts(site: Site, quotas: Quotas, at_ms: int) -> dict[str, Layout]:
    """Every pool that the quotas make at that instant, and the plain ones of all models seen by then."""
    found: dict[str, Layout] = {}
    for queue, body in sorted(quotas.cluster_queues.items()):
        for flavor in dict.fromkeys(row.flavor for row in body.quotas if is_gpu_resource(row.resource)):
            name = kueue_pool(quotas, queue, flavor)
            if name not in found:
                found[name] = _kueue_layout(site, quotas, name, flavor=flavor, queue=queue, at_ms=at_ms)
    for model, seen_ms in site.models().items():
        if seen_ms <= at_ms:
            layout = _plain_layout(site, quotas, model, at_ms)
            found.setdefault(layout.pool, layout)
    return found


def root_of(quotas: Quotas, cohort: str) -> str:
    """The cohort above all others of its tree."""
    return _line(quotas, cohort)[-1]


def _line(quotas: Quotas, cohort: str) -> list[str]:
    """A cohort and those above it; a circle, which Kueue refuses, is cut."""
    line = [cohort]
    while (body := quotas.cohorts.get(line[-1])) and body.parent and body.parent not in line:
        line.append(body.parent)
    return line


# ------------------------------------------------------------ Kueue


def _kueue_layout(site: Site, quotas: Quotas, pool: str, *, flavor: str, queue: str, at_ms: int) -> Layout:
    selector = Selector.of_flavor(quotas.flavors.get(flavor))
    maker = _Kueue(site, quotas, flavor, selector, at_ms)
    cohort = quotas.cluster_queues[queue].cohort
    if cohort:
        root = root_of(quotas, cohort)
        members = {
            name
            for name, body in quotas.cluster_queues.items()
            if body.cohort and root_of(quotas, body.cohort) == root
        }
        tree = maker.cohort(root)
    else:
        members = {queue}
        tree = CohortTree(name=queue, entities=(maker.entity(queue),))
    covers = frozenset(
        row.resource for name in members for row in _of_flavor(quotas.cluster_queues[name].quotas, flavor)
    )
    return Layout(pool=pool, tree=tree, hard_quota=True, selector=selector, covers=covers)


@dataclass(frozen=True, slots=True)
class _Kueue:
    """Makes the tree of a pool."""

    site: Site
    quotas: Quotas
    flavor: str
    selector: Selector
    at_ms: int

    def entity(self, queue: str) -> Entity:
        """A ClusterQueue, without demand."""
        body = self.quotas.cluster_queues[queue]
        rows = _of_flavor(body.quotas, self.flavor)
        return Entity(
            name=queue,
            quota=self.nominal(rows),
            demand=0,
            held=0,
            weight_milli=body.weight_milli,
            borrowing_limit=self.limit(rows, "borrowing_limit"),
            lending_limit=self.limit(rows, "lending_limit"),
            alone=not body.cohort,
        )

    def cohort(self, name: str, above: tuple[str, ...] = ()) -> CohortTree:
        """A cohort with all that is below it; one without an object has no quota and weight 1."""
        body = self.quotas.cohorts.get(name)
        rows = _of_flavor(body.quotas, self.flavor) if body else []
        queues = [
            queue
            for queue, said in sorted(self.quotas.cluster_queues.items())
            if said.cohort == name and _of_flavor(said.quotas, self.flavor)
        ]
        line = (*above, name)
        below = [
            child
            for child, said in sorted(self.quotas.cohorts.items())
            if said.parent == name and child not in line
        ]
        return CohortTree(
            name=name,
            quota=self.nominal(rows),
            weight_milli=body.weight_milli if body else 1000,
            borrowing_limit=self.limit(rows, "borrowing_limit") if above else None,
            lending_limit=self.limit(rows, "lending_limit") if above else None,
            entities=tuple(self.entity(queue) for queue in queues),
            cohorts=tuple(self.cohort(child, line) for child in below),
        )

    def nominal(self, rows: Iterable[objects.FlavorQuota]) -> int:
        """The quota of all GPU resources, micro-GPU; what is not written is 0."""
        return sum(self._micro(row.nominal, row) or 0 for row in rows)

    def limit(self, rows: list[objects.FlavorQuota], name: str) -> int | None:
        """A limit over all GPU resources: none as soon as one of them has none."""
        parts = [self._micro(getattr(row, name), row) for row in rows]
        return None if not parts or None in parts else sum(part or 0 for part in parts)

    def _micro(self, quota: Quota, row: objects.FlavorQuota) -> int | None:
        return self.site.micro(quota, resource=row.resource, selector=self.selector, at_ms=self.at_ms)


def _of_flavor(rows: Iterable[objects.FlavorQuota], flavor: str) -> list[objects.FlavorQuota]:
    return [row for row in rows if row.flavor == flavor and is_gpu_resource(row.resource)]


# ------------------------------------------------------------ all others


def _plain_layout(site: Site, quotas: Quotas, model: str, at_ms: int) -> Layout:
    selector = Selector(model=model)
    pool = plain_pool(site.cluster, model)

    room = site.room(selector)

    def micro(written: Mapping[str, Quota]) -> int | None:
        numbers = {
            resource: quota
            for resource, quota in written.items()
            if is_gpu_resource(resource) and quota.kind is QuotaKind.NUMBER
        }
        # A quota of what this model's nodes do not offer is none here.
        here = [
            site.micro(quota, resource=resource, selector=selector, at_ms=at_ms) or 0
            for resource, quota in numbers.items()
            if room.offered((resource,), at_ms)
        ]
        return sum(here) if numbers else None

    offered = room.total[-1] if room.total else {}
    everything = sum(
        site.micro(Quota(QuotaKind.NUMBER, count * 1000), resource=name, selector=selector, at_ms=at_ms) or 0
        for name, count in offered.items()
        if is_gpu_resource(name)
    )
    queues, cohorts = _Queues.of_volcano(quotas, micro).below("")
    of_kai, departments = _Queues.of_kai(quotas, micro, everything).below("")
    namespaces = _namespaces(quotas, micro)
    tree = CohortTree(name=pool, entities=(*namespaces, *queues, *of_kai), cohorts=(*cohorts, *departments))
    everybody = list(tree.members())
    return Layout(
        pool=pool,
        tree=tree,
        # A hard quota binds its own entity; only where everybody has one is nothing handed out. KAI hands
        # out all that is left, whatever the limits.
        hard_quota=bool(everybody)
        and not quotas.kai_queues
        and all(e.alone or e.borrowing_limit is not None for e in everybody),
        selector=selector,
        spread=frozenset(entity.name for entity in everybody if entity.quota or entity.borrowing_limit),
        grows=True,
        offered=room.offered(offered, at_ms),
    )


Micro: TypeAlias = Callable[[Mapping[str, Quota]], int | None]


def _namespaces(quotas: Quotas, micro: Micro) -> tuple[Entity, ...]:
    """
    Namespaces with a quota: an ElasticQuota's may lend and borrow, a ResourceQuota's do neither.

    Of a namespace with both the ElasticQuota is the agreement, and the ResourceQuota bounds what it may have.
    """
    found = []
    for space in sorted({*quotas.limited_namespaces, *quotas.elastic_namespaces}):
        hard, elastic = micro(quotas.hard(space)), quotas.elastic(space)
        if elastic is None:
            found.append(Entity(name=f"namespace/{space}", quota=hard or 0, demand=0, held=0, alone=True))
            continue
        limits = [most for most in (micro(elastic.most), hard) if most is not None]
        quota = min([micro(elastic.least) or 0, *limits])
        limit = min(limits) - quota if limits else None
        found.append(Entity(name=f"namespace/{space}", quota=quota, demand=0, held=0, borrowing_limit=limit))
    return tuple(found)


def kai_entity(quotas: Quotas, queue: str) -> str:
    """How a queue of KAI is called among the entities: by its name, unless Volcano has one of that name."""
    return f"kai/{queue}" if queue in quotas.volcano_queues else queue


class _Terms(NamedTuple):
    """A queue of a tree, micro-GPU; None is no limit. `kept` is what it never lends."""

    name: str
    parent: str
    weight_milli: int
    quota: int
    most: int | None
    kept: int | None


@dataclass(frozen=True, slots=True)
class _Queues:
    """Makes entities and cohorts of a tree of queues, by name."""

    terms: Mapping[str, _Terms]

    @classmethod
    def _rooted(cls, terms: Mapping[str, _Terms]) -> "_Queues":
        """Parents that lead in a circle, as nothing forbids, are none; so is a queue without a name."""

        def leads_back(name: str) -> bool:
            above, passed = terms[name].parent, {""}
            while above not in passed and above != name:
                passed.add(above)
                above = terms[above].parent
            return above == name

        return cls(
            {
                name: one._replace(parent="") if leads_back(name) else one
                for name, one in terms.items()
                if name
            }
        )

    @classmethod
    def of_volcano(cls, quotas: Quotas, micro: Micro) -> "_Queues":
        """Volcano's: a capability is a hard quota, the only one where nothing else is promised."""
        found = {}
        for name, body in sorted(quotas.volcano_queues.items()):
            if name == _VOLCANO_ROOT:
                continue
            known = body.parent != _VOLCANO_ROOT and body.parent in quotas.volcano_queues
            kept, most = micro(body.guarantee), micro(body.capability)
            promised = [part for part in (micro(body.deserved), kept) if part is not None]
            quota = max(promised) if promised else most or 0
            found[name] = _Terms(
                name, body.parent if known else "", body.weight * 1000, quota=quota, most=most, kept=kept
            )
        return cls._rooted(found)

    @classmethod
    def of_kai(cls, quotas: Quotas, micro: Micro, everything: int) -> "_Queues":
        """KAI's: an unlimited quota is all there is, one that is not written is none."""
        found = {}
        for name, body in sorted(quotas.kai_queues.items()):
            own = everything if body.quota.kind is QuotaKind.UNLIMITED else micro({_GPU: body.quota}) or 0
            most = micro({_GPU: body.limit})
            found[name] = _Terms(
                kai_entity(quotas, name),
                body.parent if body.parent in quotas.kai_queues else "",
                body.over_quota_weight_milli,
                quota=own if most is None else min(own, most),
                most=most,
                kept=None,
            )
        return cls._rooted(found)

    def below(self, parent: str) -> tuple[tuple[Entity, ...], tuple[CohortTree, ...]]:
        """Queues below a parent: leaves are entities, the others cohorts."""
        children = [name for name, terms in self.terms.items() if terms.parent == parent]
        parents = {terms.parent for terms in self.terms.values()}
        leaves = tuple(self._leaf(self.terms[name]) for name in children if name not in parents)
        inner = tuple(self._inner(name) for name in children if name in parents)
        return leaves, inner

    @staticmethod
    def _leaf(terms: _Terms) -> Entity:
        return Entity(
            name=terms.name,
            quota=terms.quota,
            demand=0,
            held=0,
            weight_milli=terms.weight_milli,
            borrowing_limit=None if terms.most is None else max(0, terms.most - terms.quota),
            lending_limit=None if terms.kept is None else max(0, terms.quota - terms.kept),
        )

    def _inner(self, name: str) -> CohortTree:
        """What a parent deserves is that of its children and what is left: nobody adds them up."""
        terms = self.terms[name]
        entities, cohorts = self.below(name)
        inside = CohortTree(name=terms.name, entities=entities, cohorts=cohorts)
        own = max(0, terms.quota - inside.total_quota)
        total = own + inside.total_quota
        return CohortTree(
            name=terms.name,
            quota=own,
            weight_milli=terms.weight_milli,
            borrowing_limit=None if terms.most is None else max(0, terms.most - total),
            entities=entities,
            cohorts=cohorts,
        )
