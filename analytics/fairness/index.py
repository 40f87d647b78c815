"""How fair a pool is at an instant, in one number: the fairness error, and Jain's index."""

from collections.abc import Mapping
from dataclasses import dataclass

from analytics.fairness.entities import Pool

NO_CAPACITY = "the pool has no capacity"
NOBODY_ENTITLED = "nobody in the pool is entitled to a GPU"
NOBODY_HOLDS = "nobody with an entitlement holds a GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A ratio from 0 to 1, or the reason why there is none."""

    value: float | None
    undefined_because: str = ""


def fairness_error(pool: Pool, entitled: Mapping[str, int]) -> Index:
    """
    The part of the capacity that its entities should have and do not: 0 is fair.

    Source: Armada's fairness error, sum of max(0, entitled - held) over the capacity.
    """
    reason = _undefined(pool, entitled)
    if reason:
        return Index(value=None, undefined_because=reason)
    short = sum(max(0, entitled[entity.name] - entity.held) for entity in pool.entities)
    return Index(value=short / pool.capacity)


def jains_index(pool: Pool, entitled: Mapping[str, int]) -> Index:
    """
    How equal the ratios held / entitled are, over entities with demand: 1 is fair, 1/n is one for all.

    An entity that is entitled to nothing has no ratio and is left out; without demand nobody is.

    Source: Jain, Chiu and Hawe 1984: (sum x)^2 / (n sum x^2).
    """
    reason = _undefined(pool, entitled)
    if reason:
        return Index(value=None, undefined_because=reason)
    ratios = [entity.held / entitled[entity.name] for entity in pool.entities if entitled[entity.name] > 0]
    largest = max(ratios)
    if largest == 0:
        return Index(value=None, undefined_because=NOBODY_HOLDS)
    # The index does not depend on the scale; so scaled, neither sum can overflow or vanish.
    scaled = [ratio / largest for ratio in ratios]
    index = sum(scaled) ** 2 / (len(scaled) * sum(ratio * ratio for ratio in scaled))
    return Index(value=min(1.0, index))


def _undefined(pool: Pool, entitled: Mapping[str, int]) -> str:
    if pool.capacity == 0:
        return NO_CAPACITY
    return "" if any(entitled.values()) else NOBODY_ENTITLED
