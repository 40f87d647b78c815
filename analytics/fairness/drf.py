"""
Dominant resource fairness: shares of several resources that workloads need together.

Progressive filling: every entity's dominant share rises in step with its weight until what it asks
is met or a resource that it needs is used up. Exact, in fractions.

Source: Ghodsi et al., Dominant Resource Fairness, NSDI 2011.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from analytics.fairness.maxmin import whole_parts

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """
    What is asked of each resource, in whole units. It is served in this proportion only.

    Weight 0 comes last, as with one resource.
    """

    asks: Amounts
    weight: int = 1


def progressive_filling(
    bundles: Sequence[Bundle], *, totals: Amounts, available: Amounts | None = None
) -> list[Fraction]:
    """
    The part of its bundle, from 0 to 1, that each gets.

    A resource with a total of zero is skipped: nobody gets any of it, and it holds nobody back.

    Args:
        bundles: who asks for what.
        totals: by resource, what a dominant share is a share of.
        available: by resource, what can be given; the totals unless said otherwise.
    """
    left = {
        resource: Fraction((available or totals).get(resource, 0)) for resource in totals if totals[resource]
    }
    served = [Fraction(0)] * len(bundles)
    for weights in (
        [bundle.weight for bundle in bundles],
        [0 if bundle.weight else 1 for bundle in bundles],
    ):
        _raise_together(bundles, weights, served=served, left=left, totals=totals)
    return served


def allocation(
    bundles: Sequence[Bundle], resource: str, *, totals: Amounts, available: Amounts | None = None
) -> list[int]:
    """
    What each gets of one resource, in whole units: its part of the progressive filling.

    >>> asks = [Bundle(asks={"cpu": 90, "gpu": 360}), Bundle(asks={"cpu": 270, "gpu": 90})]
    >>> allocation(asks, "gpu", totals={"cpu": 9, "gpu": 18})
    [12, 2]
    """
    if not totals.get(resource):
        return [0] * len(bundles)
    served = progressive_filling(bundles, totals=totals, available=available)
    return whole_parts(
        [part * bundle.asks.get(resource, 0) for part, bundle in zip(served, bundles, strict=True)]
    )


def _raise_together(
    bundles: Sequence[Bundle],
    weights: Sequence[int],
    *,
    served: list[Fraction],
    left: dict[str, Fraction],
    totals: Amounts,
) -> None:
    """Serve the bundles of positive weight out of what is left; changes `served` and `left`."""
    speeds = {
        i: weight / share
        for i, weight in enumerate(weights)
        if weight > 0 and (share := _dominant_share(bundles[i], totals)) > 0
    }
    while True:
        for i in list(speeds):
            if served[i] >= 1 or any(left[r] <= 0 for r in left if bundles[i].asks.get(r, 0) > 0):
                del speeds[i]
        if not speeds:
            return
        drains = {
            resource: sum(bundles[i].asks.get(resource, 0) * speed for i, speed in speeds.items())
            for resource in left
        }
        step = min(
            *(left[r] / drain for r, drain in drains.items() if drain > 0),
            *((1 - served[i]) / speed for i, speed in speeds.items()),
        )
        for i, speed in speeds.items():
            served[i] += speed * step
        for r, drain in drains.items():
            left[r] -= drain * step


def _dominant_share(bundle: Bundle, totals: Amounts) -> Fraction:
    """The largest share of a total that the whole bundle would be; 0 where it asks for nothing."""
    return max(
        (Fraction(ask, totals[r]) for r, ask in bundle.asks.items() if totals.get(r)), default=Fraction(0)
    )
