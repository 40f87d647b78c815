"""
What each entity of a pool should have now: its guaranteed part, then its share of the surplus.

Whole micro-GPU. Ties are decided by name, so the order of entities never matters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from analytics.fairness.entities import CohortTree, Pool
from analytics.fairness.maxmin import Claim, max_min, shared

Amounts = Mapping[str, int]
# Functions in C, for a sweep asks them of all entities of a pool at each change.
_NAME: Final = attrgetter("name")
_WEIGHT: Final = attrgetter("weight_milli")


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
    room = {
        entity.name: entity.most - part
        for entity, part in zip(pool.entities, guaranteed.values(), strict=True)
    }
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
    quotas = [entity.quota for entity in pool.entities]
    within = [entity.quota and min(entity.demand, entity.quota) for entity in pool.entities]
    parts = shared(pool.capacity, within, quotas)
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
    A cohort, as its parent sees it, and its children: entities and cohorts, in order of name.

    `supply` is what its members can share among themselves, `lends` the part of it that its parent
    may have too. `room` is what its members can take above their guaranteed parts, `own` the part
    of that which nobody else can take from them. The lists have a place for each child; `below` are
    those that are cohorts, by their place.
    """

    room: int
    own: int
    supply: int
    lends: int
    names: list[str]
    weights: list[int]
    rooms: list[int]
    owns: list[int]
    below: Mapping[int, "_Branch"]


def _surplus(pool: Pool, guaranteed: Amounts, branch: _Branch) -> int:
    left = pool.capacity - sum(guaranteed.values())
    handed_out = 0 if pool.hard_quota else pool.without_quota
    return min(left, handed_out + branch.supply)


def _branch(tree: CohortTree, guaranteed: Amounts, room: Amounts) -> _Branch:
    # A cohort comes before an entity of its name.
    children = sorted((*tree.cohorts, *tree.entities), key=_NAME)
    names = list(map(_NAME, children))
    below = {
        place: _branch(child, guaranteed, room)
        for place, child in enumerate(children)
        if isinstance(child, CohortTree)
    }
    rooms, owns = [room.get(name, 0) for name in names], [0] * len(names)
    for place, cohort in below.items():
        rooms[place], owns[place] = cohort.room, cohort.own
    own = sum(owns)
    # Who has no quota lends nothing.
    lendable = tree.quota + sum(cohort.lends for cohort in below.values())
    lendable += sum(each.lendable(guaranteed.get(each.name, 0)) for each in tree.entities if each.quota)
    lends = lendable if tree.lending_limit is None else min(lendable, tree.lending_limit)
    limited = sum(rooms)
    if tree.borrowing_limit is not None:
        limited = tree.room(limited, sum(guaranteed.get(entity.name, 0) for entity in tree.members()))
    return _Branch(
        room=limited,
        own=min(limited, own + lendable - lends),
        supply=own + lendable,
        lends=lends,
        names=names,
        weights=list(map(_WEIGHT, children)),
        rooms=rooms,
        owns=owns,
        below=below,
    )


def _pour(branch: _Branch, amount: int, shares: dict[str, int]) -> None:
    """Share an amount among the members of a branch."""
    if not branch.below:
        shares.update(zip(branch.names, shared(amount, branch.rooms, branch.weights), strict=True))
        return
    own = shared(amount, branch.owns, branch.owns)
    rooms = [room - part for room, part in zip(branch.rooms, own, strict=True)]
    more = shared(amount - sum(own), rooms, branch.weights)
    for place, (name, part, extra) in enumerate(zip(branch.names, own, more, strict=True)):
        if place in branch.below:
            _pour(branch.below[place], part + extra, shares)
        else:
            shares[name] = part + extra


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
