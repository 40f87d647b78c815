"""
Who lends to whom: notes beside the entitlement, not terms of it.

Whole micro-GPU. Lent sums to borrowed less what comes from no entity's quota.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from analytics.fairness.entities import Entity, Pool
from domain.quantity import largest_remainder


class Standing(NamedTuple):
    """
    An entity against its quota, micro-GPU.

    `over_quota` is what it holds above its quota with nobody to borrow from.
    """

    free_quota: int
    lent: int
    borrowed: int
    over_quota: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lending:
    """
    A pool's standings by entity.

    `from_unassigned` is the part of what is borrowed that no entity lends: from the cohorts' own
    quota, or from capacity in no quota.
    """

    standings: Mapping[str, Standing]
    from_unassigned: int


def lending(pool: Pool) -> Lending:
    """What each entity lends, borrows, and holds over its quota, by what is held now."""
    entities = pool.entities
    unused = [entity.lendable(entity.held) for entity in entities]
    borrowed = [_borrowed(entity) for entity in entities]
    lent = largest_remainder(min(sum(borrowed), sum(unused)), unused)
    return Lending(
        standings={
            entity.name: Standing(
                free_quota=max(0, entity.quota - entity.held),
                lent=lent[i],
                borrowed=borrowed[i],
                over_quota=max(0, entity.held - entity.quota) - borrowed[i],
            )
            for i, entity in enumerate(entities)
        },
        from_unassigned=sum(borrowed) - sum(lent),
    )


def _borrowed(entity: Entity) -> int:
    return 0 if entity.alone else max(0, entity.held - entity.quota)
