"""
Which pools the quotas make: a cohort's queues in one flavor, else all others on one GPU model.

Entities outside Kueue are Volcano queues, `namespace/NAME` with a ResourceQuota, and `team/NAME`
with neither. They share the pool of their cluster and model, `CLUSTER/MODEL`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from analytics.fairness.books.site import Quotas, Selector, Site
from analytics.fairness.entities import CohortTree, Entity
from domain import objects
from domain.quantity import Quota, QuotaKind, is_gpu_resource

UNLABELLED = "unlabelled"
_VOLCANO_ROOT = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """
    A pool without what is held in it: its tree of entities, and which nodes and resources it has.

    `covers` are the resources that it shares out, None for all. In `spread` stand the entities
    whose quota is one for all models of the cluster, so that this pool has a part of it only.
    `grows`: teams without any quota may come in. `offered`: units of all resources that its nodes ever
    offered together.
    """

    pool: str
    tree: CohortTree
    hard_quota: bool
    selector: Selector
    covers: frozenset[str] | None = None
    spread: frozenset[str] = field(default_factory=frozenset)
    grows: bool = False
    offered: int = 0

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

    namespaces = tuple(
        Entity(name=f"namespace/{space}", quota=micro(quotas.hard(space)) or 0, demand=0, held=0, alone=True)
        for space in quotas.limited_namespaces
    )
    volcano = _Volcano(quotas, micro)
    queues, cohorts = volcano.below("")
    tree = CohortTree(name=pool, entities=(*namespaces, *queues), cohorts=cohorts)
    everybody = list(tree.members())
    return Layout(
        pool=pool,
        tree=tree,
        # A hard quota binds its own entity; only where everybody has one is nothing handed out.
        hard_quota=bool(everybody) and all(e.alone or e.borrowing_limit is not None for e in everybody),
        selector=selector,
        spread=frozenset(entity.name for entity in everybody if entity.quota or entity.borrowing_limit),
        grows=True,
        offered=room.offered(room.total[-1] if room.total else (), at_ms),
    )


@dataclass(frozen=True, slots=True)
class _Volcano:
    """Makes the tree of Volcano's queues; `micro` gives the GPUs of a resource list, None without any."""

    quotas: Quotas
    micro: Callable[[Mapping[str, Quota]], int | None]

    def below(self, parent: str) -> tuple[tuple[Entity, ...], tuple[CohortTree, ...]]:
        """Queues below a parent: leaves are entities, the others cohorts."""
        children = {
            name: body
            for name, body in sorted(self.quotas.volcano_queues.items())
            if name != _VOLCANO_ROOT and self._parent(body) == parent
        }
        parents = {self._parent(body) for body in self.quotas.volcano_queues.values()}
        leaves = tuple(self._leaf(name, body) for name, body in children.items() if name not in parents)
        inner = tuple(self._inner(name, body) for name, body in children.items() if name in parents)
        return leaves, inner

    def _leaf(self, name: str, body: objects.VolcanoQueue) -> Entity:
        quota, most, kept = self._terms(body)
        return Entity(
            name=name,
            quota=quota,
            demand=0,
            held=0,
            weight_milli=body.weight * 1000,
            borrowing_limit=None if most is None else max(0, most - quota),
            lending_limit=None if kept is None else max(0, quota - kept),
        )

    def _inner(self, name: str, body: objects.VolcanoQueue) -> CohortTree:
        """What a parent deserves is that of its children and what is left: Volcano does not add them up."""
        quota, most, _ = self._terms(body)
        entities, cohorts = self.below(name)
        inside = CohortTree(name=name, entities=entities, cohorts=cohorts)
        own = max(0, quota - inside.total_quota)
        total = own + inside.total_quota
        return CohortTree(
            name=name,
            quota=own,
            weight_milli=body.weight * 1000,
            borrowing_limit=None if most is None else max(0, most - total),
            entities=entities,
            cohorts=cohorts,
        )

    def _terms(self, body: objects.VolcanoQueue) -> tuple[int, int | None, int | None]:
        """What a queue deserves, may have at most, and never lends."""
        guaranteed, most = self.micro(body.guarantee), self.micro(body.capability)
        promised = [part for part in (self.micro(body.deserved), guaranteed) if part is not None]
        # A capability is a hard quota; it is the queue's only one where nothing else is promised.
        quota = max(promised) if promised else most or 0
        return quota, most, guaranteed

    def _parent(self, body: objects.VolcanoQueue) -> str:
        known = body.parent != _VOLCANO_ROOT and body.parent in self.quotas.volcano_queues
        return body.parent if known else ""
