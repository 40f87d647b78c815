"""
What each entity of a pool should have now: its guaranteed part, then its share of the surplus.

Whole micro-GPU. Ties are decided by name, so the order of entities never matters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.maxmin import Claim, max_min

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """
    Who should have how much.

    `surplus` is what could be shared above the guaranteed parts, also where fewer asked for it.
    `handed_out` is the part of the capacity in no quota that was in it. `without_quota` is the
    finding `capacity without quota`: GPUs that the system can give nobody.
    """

    entitled: Amounts
    guaranteed: Amounts
    surplus: int
    handed_out: int
    without_quota: int


def entitlement(pool: Pool) -> Entitlement:
    """The entitlements of a pool. They never exceed demand, and sum to at most its capacity."""
    guaranteed = guaranteed_parts(pool)
    room = {entity.name: entity.most - guaranteed[entity.name] for entity in pool.entities}
    branch = _branch(pool.tree, guaranteed, room)
    amount = _surplus(pool, guaranteed, branch)
    more: dict[str, int] = {}
    _pour(branch, amount, more)
    return Entitlement(
        entitled={name: guaranteed[name] + more[name] for name in guaranteed},
        guaranteed=guaranteed,
        surplus=amount,
        handed_out=0 if pool.hard_quota else pool.without_quota,
        without_quota=pool.without_quota if pool.hard_quota else 0,
    )


def guaranteed_parts(pool: Pool) -> dict[str, int]:
    """The smaller of demand and quota; where the capacity is less than all, a share by quota."""
    claims = [Claim(min(entity.demand, entity.quota), entity.quota) for entity in pool.entities]
    parts = max_min(pool.capacity, claims)
    return {entity.name: part for entity, part in zip(pool.entities, parts, strict=True)}


def surplus(pool: Pool, *, guaranteed: Amounts, room: Amounts) -> int:
    """
    What can be shared above the guaranteed parts.

    Not more than the capacity that is left, nor than may be lent, with the cohorts' own quota and,
    unless quota is hard, the capacity in no quota.

    Args:
        pool: whose surplus.
        guaranteed: what each entity has already.
        room: how much more each entity may get; it decides who can take what a cohort may not lend.
    """
    return _surplus(pool, guaranteed, _branch(pool.tree, guaranteed, room))


def spread(tree: CohortTree, amount: int, *, guaranteed: Amounts, room: Amounts) -> dict[str, int]:
    """
    A surplus by weighted max-min level by level: a weight competes only with its siblings.

    Quota that a cohort may not lend is for its own members first, as a guaranteed part is.

    Args:
        tree: the root cohort.
        amount: the surplus, micro-GPU.
        guaranteed: what each entity has already.
        room: how much more each entity may get.
    """
    shares: dict[str, int] = {}
    _pour(_branch(tree, guaranteed, room), amount, shares)
    return shares


class _Branch(NamedTuple):
    """
    A cohort or an entity, as its parent sees it.

    `supply` is what its members can share among themselves, `lends` the part of it that its parent
    may have too. `room` is what its members can take above their guaranteed parts, `own` the part
    of that which nobody else can take from them.
    """

    name: str
    weight_milli: int
    room: int
    own: int
    supply: int
    lends: int
    children: tuple["_Branch", ...] = ()
    is_entity: bool = False


def _surplus(pool: Pool, guaranteed: Amounts, branch: _Branch) -> int:
    left = pool.capacity - sum(guaranteed.values())
    handed_out = 0 if pool.hard_quota else pool.without_quota
    return min(left, handed_out + branch.supply)


def _leaf(entity: Entity, guaranteed: Amounts, room: Amounts) -> _Branch:
    lends = entity.lendable(guaranteed.get(entity.name, 0))
    return _Branch(
        name=entity.name,
        weight_milli=entity.weight_milli,
        room=room[entity.name],
        own=0,
        supply=lends,
        lends=lends,
        is_entity=True,
    )


def _branch(tree: CohortTree, guaranteed: Amounts, room: Amounts) -> _Branch:
    below = [_branch(cohort, guaranteed, room) for cohort in tree.cohorts]
    leaves = [_leaf(entity, guaranteed, room) for entity in tree.entities]
    children = tuple(sorted((*leaves, *below), key=lambda child: (child.name, child.is_entity)))
    lendable = tree.quota + sum(child.lends for child in children)
    lends = lendable if tree.lending_limit is None else min(lendable, tree.lending_limit)
    used = sum(guaranteed.get(entity.name, 0) for entity in tree.members())
    limited = tree.room(sum(child.room for child in children), used)
    own = sum(child.own for child in children)
    return _Branch(
        name=tree.name,
        weight_milli=tree.weight_milli,
        room=limited,
        own=min(limited, own + lendable - lends),
        supply=own + lendable,
        lends=lends,
        children=children,
    )


def _pour(branch: _Branch, amount: int, shares: dict[str, int]) -> None:
    """Share an amount among the members of a branch."""
    own = max_min(amount, [Claim(child.own, child.own) for child in branch.children])
    claims = [
        Claim(child.room - part, child.weight_milli) for child, part in zip(branch.children, own, strict=True)
    ]
    more = max_min(amount - sum(own), claims)
    for child, part, extra in zip(branch.children, own, more, strict=True):
        if child.is_entity:
            shares[child.name] = part + extra
        else:
            _pour(child, part + extra, shares)


def team_entitlements(entitled: Amounts, claims: Mapping[str, Mapping[str, Claim]]) -> dict[str, int]:
    """
    What each team should have: an entity that several teams share splits its entitlement by max-min.

    Args:
        entitled: micro-GPU by entity.
        claims: by entity, each team's demand and the weight of its local queue.

    >>> team_entitlements({"q": 6}, {"q": {"nlp": Claim(4, 1000), "vision": Claim(4, 1000)}})
    {'nlp': 3, 'vision': 3}
    """
    totals: dict[str, int] = {}
    for entity in sorted(claims):
        teams = sorted(claims[entity])
        parts = max_min(entitled[entity], [claims[entity][team] for team in teams])
        for team, part in zip(teams, parts, strict=True):
            totals[team] = totals.get(team, 0) + part
    return totals
