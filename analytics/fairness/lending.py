"""
Who lends to whom: notes beside the entitlement, not terms of it.

Whole micro-GPU. Lent sums to borrowed less what comes from no entity's quota.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from analytics.fairness.entities import Pool
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
    unused = [entity.quota and entity.lendable(entity.held) for entity in entities]
    borrowed = [0 if entity.alone else max(0, entity.held - entity.quota) for entity in entities]
    lendable = min(sum(borrowed), sum(unused))
    lent = largest_remainder(lendable, unused) if lendable else [0] * len(entities)
    return Lending(
        standings={
            entity.name: _standing(entity.quota, entity.held, lends, borrows)
            for entity, lends, borrows in zip(entities, lent, borrowed, strict=True)
        },
        from_unassigned=sum(borrowed) - sum(lent),
    )


@lru_cache(maxsize=4096)
def _standing(quota: int, held: int, lent: int, borrowed: int) -> Standing:
    return Standing(
        free_quota=max(0, quota - held),
        lent=lent,
        borrowed=borrowed,
        over_quota=max(0, held - quota) - borrowed,
    )
