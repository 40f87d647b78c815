"""
Kueue's own weighted share, shown beside our figures. It measures borrowing, not use.

Source: Kueue `pkg/cache/scheduler/fair_sharing.go` and KEP-1714.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

# What Kueue writes into the status of a queue of weight 0 that borrows: the largest int64.
KUEUE_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorUse:
    """A queue's quota and use of one resource in one flavor, in any unit that is whole."""

    resource: str
    nominal: int
    used: int
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedShare:
    """
    A queue's share, per mille; None with a reason where Kueue's is infinite.

    `as_written` is the whole number in the queue's status. `resource` is the dominant one, empty
    where nothing is borrowed.
    """

    per_mille: float | None
    as_written: int
    resource: str = ""
    undefined_because: str = ""


def borrowed(uses: Iterable[FlavorUse], *, in_cohort: bool) -> dict[str, int]:
    """By resource, what a queue uses above its quota; without a cohort it cannot borrow."""
    totals: dict[str, int] = {}
    for use in uses:
        over = max(0, use.used - use.nominal) if in_cohort else 0
        totals[use.resource] = totals.get(use.resource, 0) + over
    return totals


def weighted_share(
    borrowing: Mapping[str, int], lendable_in_cohort: Mapping[str, int], *, weight_milli: int
) -> WeightedShare:
    """
    1000 times the largest ratio borrowed / lendable over the resources, by the weight.

    A resource of which nothing can be lent is skipped; of equal ratios the first by name counts.

    >>> weighted_share({"nvidia.com/gpu": 5}, {"nvidia.com/gpu": 39}, weight_milli=2000).as_written
    65
    """
    ratios = {
        resource: Fraction(amount * 1000, lendable_in_cohort[resource])
        for resource, amount in sorted(borrowing.items())
        if amount > 0 and lendable_in_cohort.get(resource, 0) > 0
    }
    resource = max(ratios, key=lambda name: ratios[name], default="")
    if weight_milli == 0 and any(borrowing.values()):
        reason = "a queue of weight 0 borrows"
        return WeightedShare(
            per_mille=None, as_written=KUEUE_LARGEST, resource=resource, undefined_because=reason
        )
    if not ratios:
        return WeightedShare(per_mille=0.0, as_written=0)
    share = ratios[resource] * 1000 / weight_milli
    return WeightedShare(per_mille=float(share), as_written=math.ceil(share), resource=resource)
