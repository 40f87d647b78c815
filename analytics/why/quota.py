"""Why Kueue's quota does not admit a workload: which limit of which queue or cohort stands in the way."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from analytics.fairness.kueue_shares import Kind, KueueSite
from analytics.fairness.kueue_tree import Holder, QuotaTree
from analytics.why.reason import Blocker, BlockerKind, Finding, Reason, Source, Value
from domain.objects import ResourceFlavor
from domain.placement import Placement
from domain.quantity import is_gpu_resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a workload asks of one flavor and resource, in the tree's units."""

    queue: str
    resource: str
    flavor: str
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetAsk:
    """What all pods of a set ask by resource; `flavors` are those whose nodes they may use, None for any."""

    amounts: Mapping[str, int]
    flavors: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a workload asks of its ClusterQueue; `key` is equal for those that ask alike."""

    queue: str
    pod_sets: tuple[PodSetAsk, ...]
    key: Hashable = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        sets = tuple((tuple(sorted(ask.amounts.items())), ask.flavors) for ask in self.pod_sets)
        object.__setattr__(self, "key", (self.queue, sets))


def check(demand: Demand, tree: QuotaTree) -> tuple[Finding, ...]:
    """
    Why the quota of one flavor does not admit a demand, most severe reason first; empty where it would.

    - NEVER_FITS: more is asked than the queue could have if nobody used anything.
    - QUOTA_EXHAUSTED: its own quota is in use, and it may not borrow (no cohort, or a limit of 0).
    - BORROWING_LIMIT: it, or a cohort above, would borrow more than it may. A limit of 0 is none of these:
      who may not borrow has what is its own.
    - COHORT_EXHAUSTED: it might borrow, but a cohort has not enough unused. `lent_out` is what others use of
      the queue's own quota.

    Raising each limit named, and the quota of the queue or cohort that is used up, by what is `missing` would
    admit the demand.
    """
    holder = tree.queues.get(demand.queue)
    if holder is None:
        return ()
    if demand.asked > holder.potential:
        return (_finding(Reason.NEVER_FITS, demand, holder, holder, demand.asked - holder.potential),)
    if demand.asked <= holder.available:
        return ()
    found: dict[Reason, Finding] = {}
    for reason, at, missing in _in_the_way(holder, demand.asked):
        one = _finding(reason, demand, holder, at, missing)
        if reason in found:
            one = _together(found[reason], one)
        found[reason] = one
    return tuple(sorted(found.values(), key=lambda one: one.reason.rank))


def _in_the_way(queue: Holder, asked: int) -> Iterator[tuple[Reason, Holder, int]]:
    """Reason, the queue or cohort whose limit or quota is too small, and by how much."""
    rest = asked
    for holder in queue.line():
        limit = holder.borrowing_limit
        is_bound = limit is not None or holder.parent is None
        over = holder.used + rest - holder.subtree - (limit or 0)
        if is_bound and over > 0:
            own = Reason.QUOTA_EXHAUSTED if holder is queue else Reason.COHORT_EXHAUSTED
            yield Reason.BORROWING_LIMIT if limit else own, holder, over
        rest = max(0, rest - holder.own_left)


def _finding(reason: Reason, demand: Demand, queue: Holder, at: Holder, missing: int) -> Finding:
    evidence: dict[str, Value] = {
        "queue": queue.name,
        "flavor": demand.flavor,
        "resource": demand.resource,
        "asked": demand.asked,
        "nominal": queue.quota.nominal,
        "used": queue.used,
        "available": max(queue.available, 0),
        "at_most": queue.potential,
        "missing": missing,
        # What is short, as flavor/resource; more than one where several are for the same reason.
        "kinds": (f"{demand.flavor}/{demand.resource}",),
    }
    if queue.borrowing_limit is not None:
        evidence["borrowing_limit"] = queue.borrowing_limit
    if queue.parent:
        cohort = at if at is not queue else queue.parent
        evidence |= {"cohort": cohort.name, "cohort_quota": cohort.subtree, "cohort_used": cohort.used}
        evidence["cohort_unused"] = max(cohort.unused, 0)
        # What is its own, unused by it, and not to be had: others use it.
        lent_out = queue.quota.nominal - queue.used - max(queue.available, 0)
        if lent_out > 0:
            evidence["lent_out"] = lent_out
    if at is not queue and at.borrowing_limit is not None:
        evidence["cohort_borrowing_limit"] = at.borrowing_limit
    kind = BlockerKind.QUEUE if at is queue else BlockerKind.COHORT
    remedy = _REMEDIES[reason]
    if reason is Reason.BORROWING_LIMIT and at is not queue:
        remedy = _OF_COHORT
    return Finding(
        reason=reason,
        source=Source.QUOTA,
        evidence=evidence,
        blockers=(Blocker(kind=kind, name=at.name),),
        remedy=remedy,
    )


def _together(one: Finding, other: Finding) -> Finding:
    """Two limits of one kind that are both in the way: the numbers of the first, the names of both."""
    kinds = (*_kinds(one), *(kind for kind in _kinds(other) if kind not in _kinds(one)))
    return Finding(
        reason=one.reason,
        source=one.source,
        evidence={**one.evidence, "kinds": kinds},
        blockers=one.blockers + other.blockers,
        remedy=one.remedy,
    )


def _kinds(one: Finding) -> tuple[str, ...]:
    kinds = one.evidence.get("kinds", ())
    return kinds if isinstance(kinds, tuple) else ()


@dataclass(slots=True)
class KueueQuota:
    """
    The quota of all queues of a cluster, each flavor and resource; amounts in thousandths of their units.

    It may be used up while it is asked: see `take`. What was found out for a request serves all that ask the
    same, until somebody takes or gives back in the same cohort.
    """

    site: KueueSite
    _groups: dict[str, list[tuple[frozenset[str], list[str]]]] = field(default_factory=dict)
    _changes: dict[str, int] = field(default_factory=dict)
    _roots: dict[str, str] = field(default_factory=dict)
    _admitted: dict[Hashable, tuple[int, dict[Kind, int] | None]] = field(default_factory=dict)
    _found: dict[Hashable, tuple[int, tuple[Finding, ...]]] = field(default_factory=dict)

    def groups(self, queue: str) -> Sequence[tuple[frozenset[str], list[str]]]:
        """The resource groups of a queue: resources that come from one flavor, and flavors in their order."""
        if queue not in self._groups:
            covered: dict[str, set[str]] = {}
            term = self.site.queues.get(queue)
            for flavor, resource in term.nominal if term else ():
                covered.setdefault(flavor, set()).add(resource)
            groups: dict[frozenset[str], list[str]] = {}
            for flavor, resources in covered.items():
                groups.setdefault(frozenset(resources), []).append(flavor)
            self._groups[queue] = list(groups.items())
        return self._groups[queue]

    def root(self, queue: str) -> str:
        """The highest cohort above a queue, or its own name where it has none."""
        if queue not in self._roots:
            term = self.site.queues.get(queue)
            cohort = self.site.root(term.parent) if term and term.parent else ""
            self._roots[queue] = f"cohort/{cohort}" if cohort else f"queue/{queue}"
        return self._roots[queue]

    def admits(self, request: Request) -> dict[Kind, int] | None:
        """What the request would use of each flavor and resource; None where it is not admitted now."""
        changes = self._changes.get(self.root(request.queue), 0)
        known = self._admitted.get(request.key)
        if known is None or known[0] != changes:
            known = self._admitted[request.key] = changes, self._tried(request, explained=False)[0]
        return known[1]

    def findings(self, request: Request) -> tuple[Finding, ...]:
        """
        Why the request is not admitted now, most severe reason first; empty where it is.

        As in Kueue each pod set takes, for each group of resources, the first flavor that has enough of all
        of them beside what earlier sets took. Where none has, the flavor that lacks least tells why: one that
        could have enough comes before one that never could. A GPU resource of which the queue has no
        quota is never admitted; others are taken to be left out of quota by Kueue's settings.
        """
        changes = self._changes.get(self.root(request.queue), 0)
        known = self._found.get(request.key)
        if known is None or known[0] != changes:
            found: dict[Reason, Finding] = {}
            for one in self._tried(request, explained=True)[1]:
                found[one.reason] = _together(found[one.reason], one) if one.reason in found else one
            ordered = sorted(found.values(), key=lambda one: one.reason.rank)
            known = self._found[request.key] = changes, tuple(ordered)
        return known[1]

    def take(self, queue: str, amounts: Mapping[Kind, int]) -> None:
        """Use what `admits` gave; negative amounts give it back."""
        for kind, amount in amounts.items():
            self.site.tree(kind).queues[queue].take(amount)
        root = self.root(queue)
        self._changes[root] = self._changes.get(root, 0) + 1

    def _tried(self, request: Request, *, explained: bool) -> tuple[dict[Kind, int] | None, list[Finding]]:
        """What is taken, or None where something is in the way; what that is, if it is to be explained."""
        used: dict[Kind, int] = {}
        found: list[Finding] = []
        for ask in request.pod_sets:
            left = {name: amount for name, amount in ask.amounts.items() if amount > 0}
            for resources, flavors in self.groups(request.queue):
                asked = {name: amount for name, amount in left.items() if name in resources}
                if asked:
                    open_to = [each for each in flavors if ask.flavors is None or each in ask.flavors]
                    flavor = self._first(request.queue, asked, open_to, used)
                    if flavor is None and not explained:
                        return None, []
                    if flavor is None:
                        flavor, lacking = self._least_lacking(request.queue, asked, open_to, used)
                        found += lacking
                    for name, amount in asked.items():
                        used[flavor, name] = used.get((flavor, name), 0) + amount
                        del left[name]
            found += [
                _no_flavor(request.queue, name, amount)
                for name, amount in left.items()
                if is_gpu_resource(name)
            ]
        return None if found else used, found

    def _first(
        self, queue: str, asked: Mapping[str, int], flavors: Sequence[str], used: Mapping[Kind, int]
    ) -> str | None:
        """The first flavor that has enough of all resources."""
        for flavor in flavors:
            if all(
                amount + used.get((flavor, resource), 0)
                <= self.site.tree((flavor, resource)).queues[queue].available
                for resource, amount in asked.items()
            ):
                return flavor
        return None

    def _least_lacking(
        self, queue: str, asked: Mapping[str, int], flavors: Sequence[str], used: Mapping[Kind, int]
    ) -> tuple[str, list[Finding]]:
        """The flavor that lacks least, and what is in the way there."""
        lacking: list[tuple[bool, float, int, str, list[Finding]]] = []
        for number, flavor in enumerate(flavors):
            found: list[Finding] = []
            for resource, amount in asked.items():
                total = amount + used.get((flavor, resource), 0)
                demand = Demand(queue=queue, resource=resource, flavor=flavor, asked=total)
                found += check(demand, self.site.tree((flavor, resource)))
            never = any(one.reason is Reason.NEVER_FITS for one in found)
            missing = sum(_share_missing(one) for one in found)
            lacking.append((never, missing, number, flavor, found))
        if not lacking:
            resource, amount = next(iter(asked.items()))
            return "", [_no_flavor(queue, resource, amount)]
        _, _, _, flavor, found = min(lacking, key=lambda one: one[:3])
        return flavor, found


def _share_missing(one: Finding) -> float:
    """What is missing of what is asked: bytes and GPUs are not added."""
    missing, asked = one.evidence["missing"], one.evidence["asked"]
    return missing / asked if isinstance(missing, int) and isinstance(asked, int) and asked else 0.0


def _no_flavor(queue: str, resource: str, asked: int) -> Finding:
    return Finding(
        reason=Reason.NEVER_FITS,
        source=Source.QUOTA,
        evidence={"queue": queue, "resource": resource, "asked": asked, "matching_flavors": 0},
        blockers=(Blocker(kind=BlockerKind.QUEUE, name=queue),),
        remedy="Choose a queue that has quota for these nodes, or drop what keeps the pods from its flavors.",
    )


def takes(placement: Placement | None, flavor: ResourceFlavor) -> bool:
    """
    Whether Kueue lets pods into a flavor.

    They must bear the flavor's taints, with its tolerations. Of their selector and required affinity only the
    labels that the flavor has are looked at; a term without any of them takes every flavor.

    Source: Kueue `pkg/scheduler/flavorassigner/flavorassigner.go`, `flavorSelector`.
    """
    wanted = placement or Placement()
    keys = flavor.node_labels.keys()
    # A term of which nothing is left takes every flavor, as it does here: all of no rules hold.
    terms = (tuple(rule for rule in term if rule.key in keys) for term in wanted.terms)
    return Placement(
        labels={key: value for key, value in wanted.labels.items() if key in keys},
        terms=tuple(terms),
        tolerations=wanted.tolerations + flavor.tolerations,
    ).allows("", flavor.node_labels, flavor.taints)


_OF_COHORT: Final = "Wait until work in that cohort ends, or ask for a higher borrowing limit of the cohort."
_REMEDIES: Final = {
    Reason.NEVER_FITS: "Ask for less, or choose a queue that may have as much.",
    Reason.QUOTA_EXHAUSTED: "Wait until work of the same queue ends, or ask for less.",
    Reason.BORROWING_LIMIT: "Wait until work of the same queue ends, or ask for a higher borrowing limit.",
    Reason.COHORT_EXHAUSTED: "Wait until work in the cohort ends, or ask for less.",
}
