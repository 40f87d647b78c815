"""
Percentiles of waits: of those that ended, and of all, with those that still wait counted in.

Ages are whole milliseconds on the waiting clock.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, zip_longest
from typing import NamedTuple

import polars as pl

_NEAR = 1e-9  # closer to the quantile than this, floats cannot decide


class Stay(NamedTuple):
    """
    One wait as a window sees it: under observation from age `entry_ms` up to age `exit_ms`.

    `placed`: the wait ended at `exit_ms`; otherwise it lasted at least that long. It counts as so many
    as its `weight` says, at least one: GPUs where the wait is weighted by them.
    """

    entry_ms: int
    exit_ms: int
    placed: bool
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A percentile, milliseconds. With `lower_bound` the true one is at least this."""

    value_ms: float
    lower_bound: bool = False
    few: bool = False


class Step(NamedTuple):
    """
    A jump of the survival curve: `placed` of the `at_risk` stays end at age `age_ms`.

    Both are weights; `stays` is how many are at risk, whatever they weigh.
    """

    age_ms: int
    at_risk: int
    placed: int
    stays: int


def started_quantile(waits_ms: Sequence[float], quantile: float) -> float | None:
    """
    Exact percentile with linear interpolation, as SQL's `quantile_cont`; None where there is no wait.

    Source: Hyndman and Fan 1996, type 7.

    >>> started_quantile([60_000, 120_000], 0.5)
    90000.0
    """
    if not waits_ms:
        return None
    ordered = sorted(waits_ms)
    place = (len(ordered) - 1) * quantile
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def steps(stays: Sequence[Stay]) -> Iterator[Step]:
    """
    Jumps of the survival curve in order of age, with late entry into observation.

    At risk at age t are the stays with entry < t <= exit, and at age 0 all with entry 0. At equal
    ages, ends come before censorings.
    """
    if any(stay.weight != 1 for stay in stays):
        yield from _weighted_steps(stays)
        return
    entries = pl.Series([stay.entry_ms for stay in stays], dtype=pl.Int64).sort()
    exits = pl.Series([stay.exit_ms for stay in stays], dtype=pl.Int64).sort()
    ends = pl.Series("age", [stay.exit_ms for stay in stays if stay.placed], dtype=pl.Int64)
    by_age = ends.value_counts().sort("age")
    ages, placed = by_age["age"], by_age["count"]
    entered, left = entries.search_sorted(ages, "left"), exits.search_sorted(ages, "left")
    at_once = entries.search_sorted(0, "right")
    for age, before, gone, ended in zip(ages, entered, left, placed, strict=True):
        at_risk = (before or at_once) - gone
        yield Step(age, at_risk, ended, at_risk)


def _weighted_steps(stays: Sequence[Stay]) -> Iterator[Step]:
    """The same where stays have weights: a running sum in the place of a number."""
    entries = _running([(stay.entry_ms, stay.weight) for stay in stays])
    exits = _running([(stay.exit_ms, stay.weight) for stay in stays])
    placed: dict[int, int] = {}
    for stay in stays:
        if stay.placed:
            placed[stay.exit_ms] = placed.get(stay.exit_ms, 0) + stay.weight
    for age in sorted(placed):
        come = bisect_left(entries[0], age) or bisect_right(entries[0], 0)
        gone = bisect_left(exits[0], age)
        yield Step(age, entries[1][come] - exits[1][gone], placed[age], come - gone)


def _running(weighted: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Ages in order, and before each (and after the last) the sum of the weights up to it."""
    ordered = sorted(weighted)
    return [age for age, _ in ordered], [0, *accumulate(weight for _, weight in ordered)]


def survival_quantiles(
    stays: Sequence[Stay], quantiles: Sequence[float], *, few_below: int = 5
) -> list[Quantile] | None:
    """
    Percentiles by Kaplan-Meier with delayed entry; None where nothing was observed.

    The p-quantile is the smallest age at which a share of at least p has ended. Where the curve
    does not get there, the largest age observed is a lower bound. A jump to zero while a larger
    age was observed is not taken, so that one starving workload cannot vanish behind an early
    risk set of one: the curve ends there.

    Args:
        stays: with entry < exit, or entry = exit = 0 for a wait of no length.
        quantiles: each above 0 and at most 1.
        few_below: a risk set below this on the way flags the percentile as `few`.

    Source: Kaplan and Meier 1958; left truncation as in Klein and Moeschberger, section 4.6.

    >>> half_waits = [Stay(0, 310_000, True), Stay(0, 3_600_000, False)]
    >>> survival_quantiles(half_waits, [0.99])
    [Quantile(value_ms=3600000, lower_bound=True, few=True)]
    """
    if not stays:
        return None
    largest = max(stay.exit_ms for stay in stays)
    curve = _Curve(few=len(stays) < few_below)
    open_quantiles = sorted(set(quantiles))
    found: dict[float, Quantile] = {}
    for step in steps(stays):
        if not open_quantiles:
            break
        curve.few |= step.stays < few_below
        if step.placed == step.at_risk and step.age_ms < largest:
            curve.few = True
            break
        curve.take(step)
        while open_quantiles and curve.has_reached(open_quantiles[0]):
            found[open_quantiles.pop(0)] = Quantile(value_ms=step.age_ms, few=curve.few)
    beyond = Quantile(value_ms=largest, lower_bound=True, few=curve.few)
    return [found.get(quantile, beyond) for quantile in quantiles]


@dataclass(slots=True)
class _Curve:
    """
    The survival curve so far, as a float and as the exact product behind it.

    Between two entries or censorings the product telescopes: (a-1)/a * (a-2)/(a-1) = (a-2)/a, so
    only the ends of such stretches are kept.
    """

    few: bool
    survival: float = 1.0
    stretches: list[list[int]] = field(default_factory=list)

    def take(self, step: Step) -> None:
        after = step.at_risk - step.placed
        self.survival *= after / step.at_risk
        if self.stretches and self.stretches[-1][1] == step.at_risk:
            self.stretches[-1][1] = after
        else:
            self.stretches.append([step.at_risk, after])

    def has_reached(self, quantile: float) -> bool:
        gap = 1 - self.survival - quantile
        if abs(gap) >= _NEAR:
            return gap > 0
        before = _product([stretch[0] for stretch in self.stretches])
        after = _product([stretch[1] for stretch in self.stretches])
        wanted = 1 - Fraction(str(quantile))
        return after * wanted.denominator <= before * wanted.numerator


def _product(numbers: list[int]) -> int:
    """The product by halves: factors of like size keep big integers fast."""
    while len(numbers) > 1:
        numbers = [a * b for a, b in zip_longest(numbers[::2], numbers[1::2], fillvalue=1)]
    return numbers[0] if numbers else 1
