"""
Percentiles of waits: of those that ended, and of all, with those that still wait counted in.

Ages are whole milliseconds on the waiting clock. Waits come as columns, so that ten million cost little more
than to sort them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

Longs: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

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


@dataclass(frozen=True, slots=True)
class Stays:
    """Waits as a window sees them, a column for each part of a `Stay`; without weights each counts once."""

    entry_ms: Longs
    exit_ms: Longs
    placed: Flags
    weight: Longs | None = None

    @classmethod
    def of(cls, stays: "Stays | Sequence[Stay]") -> "Stays":
        """The columns of single waits; columns stay what they are."""
        if isinstance(stays, Stays):
            return stays
        entry, exits, placed, weight = (
            np.array(column, np.int64) for column in (zip(*stays, strict=True) if stays else [()] * 4)
        )
        return cls(entry, exits, placed.astype(np.bool_), None if np.all(weight == 1) else weight)

    def __len__(self) -> int:
        return len(self.exit_ms)

    def where(self, chosen: Flags) -> "Stays":
        """Some of them."""
        weight = None if self.weight is None else self.weight[chosen]
        return Stays(self.entry_ms[chosen], self.exit_ms[chosen], self.placed[chosen], weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A percentile, milliseconds. With `lower_bound` the true one is at least this."""

    value_ms: float
    lower_bound: bool = False
    few: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """
    Jumps of the survival curve in order of age: `placed` of the `at_risk` stays end at age `age_ms`.

    Both are weights; `stays` is how many are at risk, whatever they weigh. A column each.
    """

    age_ms: Longs
    at_risk: Longs
    placed: Longs
    stays: Longs

    @property
    def after(self) -> Longs:
        """Those at risk that do not end there."""
        return self.at_risk - self.placed

    def __len__(self) -> int:
        return len(self.age_ms)

    def __getitem__(self, some: slice) -> "Steps":
        return Steps(self.age_ms[some], self.at_risk[some], self.placed[some], self.stays[some])


def started_quantile(waits_ms: Sequence[float] | Longs | Floats, quantile: float) -> float | None:
    """
    Exact percentile with linear interpolation, as SQL's `quantile_cont`; None where there is no wait.

    Source: Hyndman and Fan 1996, type 7.

    >>> started_quantile([60_000, 120_000], 0.5)
    90000.0
    """
    if not len(waits_ms):
        return None
    place = (len(waits_ms) - 1) * quantile
    below = math.floor(place)
    above = min(below + 1, len(waits_ms) - 1)
    low, high = np.partition(np.asarray(waits_ms), (below, above))[[below, above]].tolist()
    return low + (high - low) * (place - below)  # type: ignore[no-any-return]


class _Ages(NamedTuple):
    """Ages in order, and the weight of so many first of them."""

    ages: Longs
    weights: Longs

    @classmethod
    def of(cls, ages: Longs, weight: Longs | None) -> Self:
        if weight is None:
            return cls(np.sort(ages), np.arange(len(ages) + 1))
        order = np.argsort(ages)
        return cls(ages[order], np.concatenate(([0], np.cumsum(weight[order]))))

    def before(self, ages: Longs) -> tuple[Longs, Longs]:
        """The number, and the weight, of those below each of the ages, which are in order."""
        # A few are looked up among many, and each moves the count of all that follow.
        places = np.searchsorted(ages, self.ages, "right")
        count = np.cumsum(np.bincount(places, minlength=len(ages) + 1))[: len(ages)]
        return count, self.weights[count]


def steps(stays: Stays | Sequence[Stay]) -> Steps:
    """
    Jumps of the survival curve, with late entry into observation.

    At risk at age t are the stays with entry < t <= exit, and at age 0 all with entry 0. At equal
    ages, ends come before censorings.
    """
    stays = Stays.of(stays)
    weight, at_once = stays.weight, stays.entry_ms == 0

    def ages(column: Longs, some: Flags) -> _Ages:
        return _Ages.of(column[some], None if weight is None else weight[some])

    ends, cut_off = ages(stays.exit_ms, stays.placed), ages(stays.exit_ms, ~stays.placed)
    late = ages(stays.entry_ms, ~at_once)
    first = np.flatnonzero(np.diff(ends.ages, prepend=-1))
    until = np.append(first[1:], len(ends.ages))
    age_ms = ends.ages[first]
    come, come_weight = late.before(age_ms)
    gone, gone_weight = cut_off.before(age_ms)
    all_weight = int(at_once.sum() if weight is None else weight[at_once].sum())
    return Steps(
        age_ms,
        at_risk=all_weight + come_weight - gone_weight - ends.weights[first],
        placed=ends.weights[until] - ends.weights[first],
        stays=int(at_once.sum()) + come - gone - first,
    )


@dataclass(frozen=True, slots=True)
class Curve:
    """
    The survival curve by Kaplan-Meier with delayed entry.

    It ends early (`cut`) where a jump to zero is not taken, because a larger age was observed: so one
    starving workload cannot vanish behind an early risk set of one.

    Source: Kaplan and Meier 1958; left truncation as in Klein and Moeschberger, section 4.6.
    """

    steps: Steps
    largest_ms: int
    cut: bool
    # Where the risk set is not what the step before left of it. Between two of these the product telescopes:
    # (a-1)/a * (a-2)/(a-1) = (a-2)/a.
    begins: Longs

    @classmethod
    def of(cls, stays: Stays) -> Self:
        """The curve of at least one stay."""
        found, largest_ms = steps(stays), int(stays.exit_ms.max())
        lonely = np.flatnonzero((found.placed == found.at_risk) & (found.age_ms < largest_ms))
        cut = bool(len(lonely))
        taken = found[: lonely[0]] if cut else found
        left = np.append(-1, taken.after)[:-1]
        return cls(taken, largest_ms, cut, begins=np.flatnonzero(taken.at_risk != left))

    def survival(self) -> Floats:
        """After each step."""
        at_first, lengths = self.steps.at_risk[self.begins], np.diff(self.begins, append=len(self.steps))
        left = self.steps.after[self.begins + lengths - 1] / at_first
        before = np.cumprod(np.concatenate(([1.0], left)))[:-1]
        return np.asarray(np.repeat(before / at_first, lengths) * self.steps.after)

    def reaches(self, quantile: float, ended: Floats) -> int:
        """The first step after which at least this share has ended; as many as there are where none does."""
        near, sure = np.searchsorted(ended, (quantile - _NEAR, quantile + _NEAR)).tolist()
        return next((step for step in range(near, sure) if self._has_reached(step, quantile)), sure)

    def _has_reached(self, step: int, quantile: float) -> bool:
        """The same of one step, in whole numbers."""
        begins = self.begins[: np.searchsorted(self.begins, step, "right")]
        before = _product(self.steps.at_risk[begins].tolist())
        after = _product(self.steps.after[np.append(begins[1:] - 1, step)].tolist())
        wanted = 1 - Fraction(str(quantile))
        return after * wanted.denominator <= before * wanted.numerator


def survival_quantiles(
    stays: Stays | Sequence[Stay], quantiles: Sequence[float], *, few_below: int = 5
) -> list[Quantile] | None:
    """
    Percentiles by Kaplan-Meier with delayed entry; None where nothing was observed.

    The p-quantile is the smallest age at which a share of at least p has ended. Where the curve
    does not get there, the largest age observed is a lower bound; see `Curve` for where it ends.

    Args:
        stays: with entry < exit, or entry = exit = 0 for a wait of no length.
        quantiles: each above 0 and at most 1.
        few_below: a risk set below this on the way flags the percentile as `few`.

    >>> half_waits = [Stay(0, 310_000, True), Stay(0, 3_600_000, False)]
    >>> survival_quantiles(half_waits, [0.99])
    [Quantile(value_ms=3600000, lower_bound=True, few=True)]
    """
    stays = Stays.of(stays)
    if not len(stays):
        return None
    curve = Curve.of(stays)
    ended = 1 - curve.survival()
    thin = np.flatnonzero(curve.steps.stays < few_below)
    first_thin = 0 if len(stays) < few_below else int(thin[0]) if len(thin) else len(ended)
    found = []
    for quantile in quantiles:
        step = curve.reaches(quantile, ended)
        if step < len(ended):
            found.append(Quantile(value_ms=int(curve.steps.age_ms[step]), few=first_thin <= step))
        else:
            few = curve.cut or len(stays) < few_below or first_thin < len(ended)
            found.append(Quantile(value_ms=curve.largest_ms, lower_bound=True, few=few))
    return found


def _product(numbers: list[int]) -> int:
    """The product by halves: factors of like size keep big integers fast."""
    while len(numbers) > 1:
        numbers = [a * b for a, b in zip_longest(numbers[::2], numbers[1::2], fillvalue=1)]
    return numbers[0] if numbers else 1
