"""How a pool stands at an instant: its layout filled with what is held and asked, and what follows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from analytics.fairness.books.layout import Layout
from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import entitlement
from analytics.fairness.index import Index, fairness_error, jains_index
from analytics.fairness.lending import Standing, lending
from domain.quantity import largest_remainder


class Use(NamedTuple):
    """What an entity asks, held included, and holds: micro-GPU."""

    demand: int
    held: int


NOTHING = Use(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """A pool at an instant, micro-GPU; `quota` and `entitled` by entity."""

    capacity: int
    quota: Mapping[str, int]
    entitled: Mapping[str, int]
    standings: Mapping[str, Standing]
    from_unassigned: int
    without_quota: int
    error: Index
    jain: Index


class Terms(NamedTuple):
    """An entity's part, in one pool, of a quota that is one for all models."""

    quota: int
    borrowing_limit: int | None
    lending_limit: int | None


def pool_of(
    layout: Layout,
    capacity: int,
    uses: Mapping[str, Use],
    terms: Mapping[str, Terms] | None = None,
    *,
    strangers: Mapping[str, Entity] | None = None,
) -> Pool:
    """
    The pool with what is held and asked.

    Whoever holds or asks without being in its tree has no quota: a team where teams may come in,
    else a queue that has lost its quota here, which can neither lend nor borrow. `strangers` are such,
    made by `strangers_of` of these uses; None makes them.
    """
    found = strangers_of(layout, uses, {}) if strangers is None else strangers
    hard = layout.hard_quota and not (found and layout.grows)
    return Pool(
        capacity=capacity,
        tree=_filled(layout.tree, uses, terms or {}, (*found.values(),)),
        hard_quota=hard,
    )


def strangers_of(layout: Layout, uses: Mapping[str, Use], before: Mapping[str, Entity]) -> dict[str, Entity]:
    """
    Those who hold or ask without being in the tree of a pool, by name.

    Args:
        layout: of the pool.
        uses: by entity.
        before: what this gave for the layout before: an entity of which nothing changed is the same.
    """
    found = {}
    for name in sorted(uses.keys() - layout.names):
        use, known = uses[name], before.get(name)
        if known is None or known.demand != use.demand or known.held != use.held:
            known = Entity(name=name, quota=0, demand=use.demand, held=use.held, alone=not layout.grows)
        found[name] = known
    return found


def state_of(pool: Pool) -> PoolState:
    """What follows from a pool."""
    found = entitlement(pool)
    lent = lending(pool)
    return PoolState(
        capacity=pool.capacity,
        quota={entity.name: entity.quota for entity in pool.entities},
        entitled=found.entitled,
        standings=lent.standings,
        from_unassigned=lent.from_unassigned,
        without_quota=found.without_quota,
        error=fairness_error(pool, found.entitled),
        jain=jains_index(pool, found.entitled),
    )


def part_of(amount: int, uses: Mapping[str, Use], capacities: Mapping[str, int]) -> dict[str, int]:
    """
    A quota for all models, by pool: where it is used, then where more is asked, then by capacity.

    >>> part_of(8, {"a": Use(9, 2), "b": Use(0, 0)}, {"a": 8, "b": 8})
    {'a': 8, 'b': 0}
    """
    pools = sorted(capacities)
    parts = dict.fromkeys(pools, 0)
    left = amount
    held = [uses.get(pool, NOTHING).held for pool in pools]
    asked = [max(0, uses.get(pool, NOTHING).demand - h) for pool, h in zip(pools, held, strict=True)]
    for wanted, most in ((held, sum(held)), (asked, sum(asked)), ([capacities[p] for p in pools], left)):
        given = largest_remainder(min(left, most), wanted)
        for pool, part in zip(pools, given, strict=True):
            parts[pool] += part
        left -= sum(given)
    return parts


def _filled(
    tree: CohortTree, uses: Mapping[str, Use], terms: Mapping[str, Terms], others: tuple[Entity, ...] = ()
) -> CohortTree:
    """The tree with what is held and asked, and with others beside those in its root."""
    own = tuple(_entity(entity, uses.get(entity.name, NOTHING), terms) for entity in tree.entities)
    return CohortTree(
        name=tree.name,
        quota=tree.quota,
        weight_milli=tree.weight_milli,
        borrowing_limit=tree.borrowing_limit,
        lending_limit=tree.lending_limit,
        entities=(*own, *others),
        cohorts=tuple(_filled(cohort, uses, terms) for cohort in tree.cohorts),
    )


def _entity(entity: Entity, use: Use, terms: Mapping[str, Terms]) -> Entity:
    own = terms.get(entity.name)
    if own is None and (entity.demand, entity.held) == use:
        return entity
    return Entity(
        name=entity.name,
        quota=own.quota if own else entity.quota,
        demand=use.demand,
        held=use.held,
        weight_milli=entity.weight_milli,
        borrowing_limit=own.borrowing_limit if own else entity.borrowing_limit,
        lending_limit=own.lending_limit if own else entity.lending_limit,
        alone=entity.alone,
    )
