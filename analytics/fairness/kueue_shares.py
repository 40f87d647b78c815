"""
Kueue's weighted shares of all queues at an instant, from the rows of their terms and uses.

What the cohort of a queue can lend is what it could have at most: the quota below it as far as its
members lend it, and what it may borrow of the cohorts above. Definitions name the share of a queue in
one cohort only; in a tree this follows Kueue.

Source: Kueue `pkg/cache/scheduler/fair_sharing.go` and `resource_node.go`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from analytics.evaluate import NOTHING_OBSERVED, passes, shown, whole
from analytics.fairness.kueue_share import FlavorUse, WeightedShare, borrowed, weighted_share
from analytics.fairness.kueue_tree import QueueQuota, QuotaTree
from domain.metric import Ask, Row, Sample

# Flavor and resource.
Kind: TypeAlias = tuple[str, str]
# Who is below whom is the same for every kind: that of none shows it too where nobody has quota.
_SHAPE: Final[Kind] = ("", "")

TERMS_AND_USES: Final = """\
-- One row per ClusterQueue and Cohort just before $as_of_ms with its terms (what = its kind), and per queue,
-- flavor and amount of quota that workloads have reserved ('use'): number is of how many workloads.
select
    kind as what,
    cluster,
    name as queue,
    parent,
    weight_milli,
    quotas,
    '' as flavor,
    '' as resources,
    0 as number
from kueue_term
where start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true)
union all
select
    'use' as what,
    cluster,
    queue,
    '' as parent,
    0 as weight_milli,
    '' as quotas,
    flavor,
    resources,
    count(*) as number
from quota_used
where start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
group by cluster, queue, flavor, resources
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTerm:
    """A queue or cohort; amounts in thousandths by flavor and resource, no limit where there is none."""

    parent: str
    weight_milli: int
    nominal: Mapping[Kind, int]
    lending: Mapping[Kind, int]
    borrowing: Mapping[Kind, int]

    @classmethod
    def nothing(cls) -> "QueueTerm":
        """Those of a cohort without an object: no quota, and weight 1."""
        return cls(parent="", weight_milli=1000, nominal={}, lending={}, borrowing={})


@dataclass(slots=True)
class KueueSite:
    """All queues and cohorts of one cluster; `rows` are the queues' own, by which they are shown."""

    queues: dict[str, QueueTerm] = field(default_factory=dict)
    cohorts: dict[str, QueueTerm] = field(default_factory=dict)
    used: dict[str, dict[Kind, int]] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    _trees: dict[Kind, QuotaTree] = field(default_factory=dict)

    def uses(self, queue: str) -> list[FlavorUse]:
        """Quota and use of a queue, by flavor and resource; use without a quota Kueue does not count."""
        term, used = self.queues[queue], self.used.get(queue, {})
        return [
            FlavorUse(
                resource=kind[1],
                nominal=term.nominal.get(kind, 0),
                used=used.get(kind, 0),
                lending_limit=term.lending.get(kind),
            )
            for kind in sorted(term.nominal)
        ]

    def borrowed(self, queue: str) -> dict[str, int]:
        """What the queue borrows by resource, thousandths."""
        return borrowed(self.uses(queue), in_cohort=bool(self.queues[queue].parent))

    def share(self, queue: str) -> WeightedShare:
        """Kueue's weighted share of a queue; one without a cohort has none to borrow from."""
        term = self.queues[queue]
        lendable: dict[str, int] = {}
        for kind in self.kinds if term.parent else ():
            most = self.tree(kind).cohorts[term.parent].potential
            lendable[kind[1]] = lendable.get(kind[1], 0) + most
        return weighted_share(self.borrowed(queue), lendable, weight_milli=term.weight_milli)

    @property
    def kinds(self) -> list[Kind]:
        """The flavors and resources that any queue or cohort has quota of."""
        terms = (*self.queues.values(), *self.cohorts.values())
        return sorted({kind for term in terms for kind in term.nominal})

    def tree(self, kind: Kind) -> QuotaTree:
        """The quota of one flavor and resource; use without a quota Kueue does not count."""
        found = self._trees.get(kind)
        if found is None:
            found = self._trees[kind] = QuotaTree(
                QueueQuota(
                    name=name,
                    parent=term.parent,
                    nominal=term.nominal.get(kind, 0),
                    borrowing_limit=term.borrowing.get(kind),
                    lending_limit=term.lending.get(kind),
                    used=0 if is_cohort or kind not in term.nominal else self.used.get(name, {}).get(kind, 0),
                    is_cohort=is_cohort,
                )
                for is_cohort, terms in ((False, self.queues), (True, self.cohorts))
                for name, term in terms.items()
            )
        return found

    def root(self, cohort: str) -> str:
        """The cohort above all others of its tree."""
        return self.tree(_SHAPE).cohorts[cohort].line()[-1].name

    def queues_of(self, cohort: str) -> list[str]:
        """The queues right in a cohort, by name."""
        return sorted(name for name, term in self.queues.items() if term.parent == cohort)

    def members(self, root: str) -> list[str]:
        """All queues of the tree under a root cohort, by name."""
        return sorted(name for name, t in self.queues.items() if t.parent and self.root(t.parent) == root)

    def below(self, cohort: str) -> list[str]:
        """The cohorts right below one."""
        return [name for name, term in self.cohorts.items() if term.parent == cohort and name != cohort]


def kueue_sites(rows: Sequence[Row]) -> dict[str, KueueSite]:
    """Each cluster's queues, from the rows of `TERMS_AND_USES`."""
    sites: dict[str, KueueSite] = {}
    for row in rows:
        site = sites.setdefault(str(row["cluster"]), KueueSite())
        name = str(row["queue"])
        if row["what"] == "use":
            used = site.used.setdefault(name, {})
            for resource, amount in json.loads(str(row["resources"])).items():
                kind = (str(row["flavor"]), str(resource))
                used[kind] = used.get(kind, 0) + amount * whole(row, "number")
        else:
            known = site.queues if row["what"] == "ClusterQueue" else site.cohorts
            known[name] = _term(row)
            if row["what"] == "ClusterQueue":
                site.rows[name] = row
    return sites


def weighted_shares(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The share of each queue; several queues have none together."""
    found: dict[tuple[str, ...], list[WeightedShare]] = {}
    for site in kueue_sites(rows).values():
        for queue, row in site.rows.items():
            if passes(row, ask.filters):
                labels = shown(row)
                found.setdefault(tuple(str(labels[name]) for name in ask.by), []).append(site.share(queue))
    samples = []
    for key, shares in found.items():
        named = dict(zip(ask.by, key, strict=True))
        if len(shares) > 1:
            samples.append(
                Sample.undefined(named, "shares of queues are not added: ask by cluster and queue")
            )
        elif shares[0].per_mille is None:
            samples.append(Sample.undefined(named, shares[0].undefined_because))
        else:
            samples.append(Sample(labels=named, value=shares[0].per_mille))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def _term(row: Row) -> QueueTerm:
    quotas = json.loads(str(row["quotas"]))
    return QueueTerm(
        parent=str(row["parent"]),
        weight_milli=whole(row, "weight_milli"),
        nominal={(flavor, resource): nominal for flavor, resource, nominal, _, _ in quotas},
        lending={(flavor, resource): most for flavor, resource, _, most, _ in quotas if most is not None},
        borrowing={(flavor, resource): most for flavor, resource, _, _, most in quotas if most is not None},
    )
