"""
Entitlement to one resource where workloads need several together: GPUs with CPUs and memory.

Guaranteed parts are those of each resource; the surpluses are shared by dominant resource fairness,
level by level as with one resource.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from analytics.fairness.drf import Bundle, progressive_filling
from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import Amounts, guaranteed_parts, surplus
from analytics.fairness.maxmin import whole_parts


def dominant_entitlement(pools: Mapping[str, Pool], resource: str) -> dict[str, int]:
    """
    What each entity should have of a resource: its part of the allocation of all of them.

    An entity that a resource's pool does not know asks for none of it; one that the pool of the
    resource asked about does not know has its guaranteed parts only. A resource whose pool has no
    capacity is skipped. Quota that a cohort may not lend to its parent is left out of the surplus.
    With one resource, and without such limits, this is `entitlement`.

    Args:
        pools: by resource, each in its own whole units; entities and cohorts go by their names.
        resource: the one that is asked about.
    """
    guaranteed = {name: guaranteed_parts(pool) for name, pool in pools.items()}
    filling = _Filling(
        totals={name: pool.capacity for name, pool in pools.items()},
        bundles=_bundles(pools, guaranteed),
        cohorts={name: _cohorts(pool.tree) for name, pool in pools.items()},
        guaranteed=guaranteed,
    )
    available = {
        name: surplus(pool, guaranteed=guaranteed[name], room=dict.fromkeys(guaranteed[name], 0))
        for name, pool in pools.items()
    }
    shares = dict(guaranteed[resource])
    filling.pour(pools[resource].tree, available, resource=resource, shares=shares)
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filling:
    """What stays the same on every level; all by resource, `bundles` by entity and resource."""

    totals: Amounts
    bundles: Mapping[str, Amounts]
    cohorts: Mapping[str, Mapping[str, CohortTree]]
    guaranteed: Mapping[str, Amounts]

    def pour(self, tree: CohortTree, available: Amounts, *, resource: str, shares: dict[str, int]) -> None:
        """Share what is available among the members of a cohort; adds to `shares`."""
        children: list[Entity | CohortTree] = [*tree.entities, *tree.cohorts]
        children.sort(key=lambda child: (child.name, isinstance(child, Entity)))
        asked = [
            Bundle(
                asks=self.within_limits(child) if isinstance(child, CohortTree) else self.bundles[child.name],
                weight=child.weight_milli,
            )
            for child in children
        ]
        served = progressive_filling(asked, totals=self.totals, available=available)
        given = {
            name: whole_parts([part * one.asks[name] for part, one in zip(served, asked, strict=True)])
            for name in self.totals
        }
        for i, child in enumerate(children):
            if isinstance(child, CohortTree):
                parts = {name: amounts[i] for name, amounts in given.items()}
                self.pour(child, parts, resource=resource, shares=shares)
            else:
                shares[child.name] += given[resource][i] if self.totals[resource] else 0

    def within_limits(self, tree: CohortTree) -> Amounts:
        """What a cohort's members ask together, as far as it may borrow it."""
        inner = [self.within_limits(cohort) for cohort in tree.cohorts]
        asked = [*inner, *(self.bundles[entity.name] for entity in tree.entities)]
        asks = {name: sum(one[name] for one in asked) for name in self.totals}
        room = dict(asks)
        for name, cohorts in self.cohorts.items():
            if tree.name in cohorts:
                cohort = cohorts[tree.name]
                used = sum(self.guaranteed[name][entity.name] for entity in cohort.members())
                room[name] = cohort.room(asks[name], used)
        return _cut(asks, room, self.totals)


def _bundles(pools: Mapping[str, Pool], guaranteed: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """What each entity asks above its guaranteed parts, as far as its limits allow in proportion."""
    unmet: dict[str, dict[str, int]] = {}
    room: dict[str, dict[str, int]] = {}
    for name, pool in pools.items():
        for entity in pool.entities:
            has = guaranteed[name][entity.name]
            unmet.setdefault(entity.name, dict.fromkeys(pools, 0))[name] = entity.demand - has
            room.setdefault(entity.name, dict.fromkeys(pools, 0))[name] = entity.most - has
    totals = {name: pool.capacity for name, pool in pools.items()}
    return {entity: _cut(asks, room[entity], totals) for entity, asks in unmet.items()}


def _cut(asks: Amounts, room: Amounts, totals: Amounts) -> dict[str, int]:
    """Asks in the same proportion to each other, so small that all fit their room."""
    ratios = [Fraction(room[name], ask) for name, ask in asks.items() if ask > 0 and totals[name]]
    part = min(ratios, default=Fraction(1))
    return {name: int(part * ask) for name, ask in asks.items()}


def _cohorts(tree: CohortTree) -> dict[str, CohortTree]:
    found = {tree.name: tree}
    for cohort in tree.cohorts:
        found |= _cohorts(cohort)
    return found
