"""
Entitlement over several resources, of the queues that Kueue promises GPUs together with CPUs or memory.

Everything is counted as Kueue counts it: quota that was reserved, and what waiting workloads ask. The
capacity of a pool is its quotas. What waits counts in the first flavor with GPUs of its queue.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, shown, whole
from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import entitlement
from analytics.fairness.kueue_shares import TERMS_AND_USES, KueueSite, QueueTerm, kueue_sites
from analytics.fairness.several_resources import dominant_entitlement
from domain.metric import Ask, Row, Sample
from domain.quantity import is_gpu_resource

# The resource whose units are whole cards; what is shared out in parts of cards has several of its own.
CARDS: Final = "nvidia.com/gpu"
_MILLI: Final = 1000
NOT_KNOWN: Final = "what waiting work asks beside GPUs was not read yet"
NOT_TOGETHER: Final = "entitlements in several flavors are not added: ask by pool too"

TERMS_USES_AND_ASKS: Final = f"""\
{TERMS_AND_USES.rstrip()}
union all
-- What workloads that wait and have no quota ask; resources '' where that is not known.
select
    'ask' as what,
    waiting.cluster,
    waiting.queue,
    '' as parent,
    0 as weight_milli,
    '' as quotas,
    '' as flavor,
    coalesce(asked.resources, '') as resources,
    count(*) as number
from workload_span as waiting
left join quota_used as asked
    on
        waiting.cluster = asked.cluster
        and waiting.workload_uid = asked.workload_uid
        and asked.open_until_ms >= $as_of_ms
        and asked.start_ms < $as_of_ms
        and coalesce(asked.end_ms >= $as_of_ms, true)
where
    waiting.waits
    and waiting.open_until_ms >= $as_of_ms
    and waiting.start_ms < $as_of_ms
    and coalesce(waiting.end_ms >= $as_of_ms, true)
    and coalesce(asked.queue, '') = ''
group by waiting.cluster, waiting.queue, asked.resources
"""  # noqa: S608 (the rows of another metric and ours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a queue should have of a flavor's cards; None where what waits there is not known."""

    flavor: str
    queue: str
    cards: float | None


def dominant_shares(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The part of the GPUs in each queue's dominant share, of queues with a quota of whole cards."""
    found: dict[tuple[str, ...], list[Share]] = {}
    for cluster, site in kueue_sites([row for row in rows if row["what"] != "ask"]).items():
        asked = [row for row in rows if row["what"] == "ask" and row["cluster"] == cluster]
        for share in _shares(site, asked):
            labels = {**shown(site.rows[share.queue]), "pool": share.flavor}
            if all(labels[name] in wanted for name, wanted in ask.filters.items()):
                found.setdefault(tuple(str(labels[name]) for name in ask.by), []).append(share)
    samples = []
    for key, shares in sorted(found.items()):
        named = dict(zip(ask.by, key, strict=True))
        if len({share.flavor for share in shares}) > 1:
            samples.append(Sample.undefined(named, NOT_TOGETHER))
        elif any(share.cards is None for share in shares):
            samples.append(Sample.undefined(named, NOT_KNOWN))
        else:
            samples.append(Sample(labels=named, value=sum(share.cards or 0.0 for share in shares)))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def _shares(site: KueueSite, asked: Sequence[Row]) -> Iterator[Share]:
    wanted, unknown = _wanted(site, asked)
    roots = {name: site.root(term.parent) if term.parent else name for name, term in site.queues.items()}
    for root in sorted(set(roots.values())):
        queues = [name for name in sorted(roots) if roots[name] == root]
        flavors = {
            flavor for name in queues for flavor, resource in site.queues[name].nominal if resource == CARDS
        }
        for flavor in sorted(flavors):
            pools = dict(_pools(site, root, flavor, wanted))
            told = (
                dominant_entitlement(pools, CARDS) if len(pools) > 1 else entitlement(pools[CARDS]).entitled
            )
            known = not any((name, flavor) in unknown for name in queues)
            for entity in pools[CARDS].entities:
                cards = told[entity.name] / _MILLI if known else None
                yield Share(flavor=flavor, queue=entity.name, cards=cards)


def _wanted(
    site: KueueSite, asked: Sequence[Row]
) -> tuple[dict[tuple[str, str], dict[str, int]], set[tuple[str, str]]]:
    """What waiting work asks by queue and flavor, thousandths; and where that is not known."""
    wanted: dict[tuple[str, str], dict[str, int]] = {}
    unknown: set[tuple[str, str]] = set()
    for row in asked:
        queue = str(row["queue"])
        if queue not in site.queues:
            continue
        flavors = dict.fromkeys(
            name for name, resource in site.queues[queue].nominal if is_gpu_resource(resource)
        )
        if not row["resources"]:
            # It may go to any of them.
            unknown |= {(queue, flavor) for flavor in flavors}
            continue
        each = json.loads(str(row["resources"]))
        for flavor in flavors:
            if _could_hold(site, queue, flavor, each):
                amounts = wanted.setdefault((queue, flavor), {})
                for resource, amount in each.items():
                    amounts[resource] = amounts.get(resource, 0) + amount * whole(row, "number")
                break
    return wanted, unknown


def _could_hold(site: KueueSite, queue: str, flavor: str, each: Mapping[str, int]) -> bool:
    """Whether the quotas of a flavor could ever hold one workload: its queue's, and what may be borrowed."""
    term = site.queues[queue]
    for resource, amount in each.items():
        kind = (flavor, resource)
        if kind not in term.nominal:
            # Nobody counts it here, unless it is the GPUs themselves.
            if is_gpu_resource(resource):
                return False
            continue
        if amount > site.tree(kind).queues[queue].potential:
            return False
    return True


def _pools(
    site: KueueSite, root: str, flavor: str, wanted: Mapping[tuple[str, str], Mapping[str, int]]
) -> Iterator[tuple[str, Pool]]:
    """A pool for each resource that the queues below a root have a quota of in this flavor."""
    in_cohort = root not in site.queues or bool(site.queues[root].parent)
    members = site.members(root) if in_cohort else [root]
    resources = {kind[1] for name in members for kind in site.queues[name].nominal if kind[0] == flavor}
    for resource in sorted(resources):
        make = _Maker(site, (flavor, resource), wanted)
        tree = make.cohort(root) if in_cohort else CohortTree(name=root, entities=(make.entity(root),))
        yield resource, Pool(capacity=tree.total_quota, tree=tree, hard_quota=True)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the tree of one flavor and resource, in thousandths."""

    site: KueueSite
    kind: tuple[str, str]
    wanted: Mapping[tuple[str, str], Mapping[str, int]]

    def entity(self, queue: str) -> Entity:
        term = self.site.queues[queue]
        held = self.site.used.get(queue, {}).get(self.kind, 0)
        waits = self.wanted.get((queue, self.kind[0]), {}).get(self.kind[1], 0)
        return Entity(
            name=queue,
            quota=term.nominal.get(self.kind, 0),
            demand=held + waits,
            held=held,
            weight_milli=term.weight_milli,
            borrowing_limit=term.borrowing.get(self.kind),
            lending_limit=term.lending.get(self.kind),
            alone=not term.parent,
        )

    def cohort(self, name: str, above: tuple[str, ...] = ()) -> CohortTree:
        """A cohort with all that is below it; one without an object has no quota and weight 1."""
        term = self.site.cohorts.get(name, QueueTerm.nothing())
        line = (*above, name)
        below = (child for child in self.site.below(name) if child not in line)
        return CohortTree(
            name=name,
            quota=term.nominal.get(self.kind, 0),
            weight_milli=term.weight_milli,
            borrowing_limit=term.borrowing.get(self.kind) if above else None,
            lending_limit=term.lending.get(self.kind) if above else None,
            entities=tuple(
                self.entity(queue)
                for queue in self.site.queues_of(name)
                if any(flavor == self.kind[0] for flavor, _ in self.site.queues[queue].nominal)
            ),
            cohorts=tuple(self.cohort(child, line) for child in sorted(below)),
        )
