"""
Percentiles of waits: of those that ended, and of all, with those that still wait counted in.

Ages are whole milliseconds on the waiting clock. Waits come as columns, so that ten million cost little more
than to sort them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise, zip_longest
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

Longs: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

# Stays of so many groups are looked at together, a few columns of them, as a processor's cache holds.
_TOGETHER = 1 << 15
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

    @classmethod
    def joined(cls, parts: "Sequence[Stays]") -> "Stays":
        """The stays of all parts, one after the other."""
        entry, exits, placed = (
            np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__[:3]
        )
        if all(part.weight is None for part in parts):
            return cls(entry, exits, placed)
        weights = [np.ones(len(part), np.int64) if part.weight is None else part.weight for part in parts]
        return cls(entry, exits, placed, np.concatenate(weights))

    def __len__(self) -> int:
        return len(self.exit_ms)

    def where(self, chosen: Flags | slice) -> "Stays":
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
    found = started_quantiles(waits_ms, [quantile])
    return found[0] if found else None


def started_quantiles(waits_ms: Sequence[float] | Longs | Floats, quantiles: Sequence[float]) -> list[float]:
    """The same of several percentiles; none where there is no wait."""
    last = len(waits_ms) - 1
    if last < 0:
        return []
    places = [last * quantile for quantile in quantiles]
    wanted = [(math.floor(place), min(math.floor(place) + 1, last)) for place in places]
    inner = sorted({index for pair in wanted for index in pair})
    in_order = np.partition(np.asarray(waits_ms), inner)
    values = dict(zip(inner, in_order[inner].tolist(), strict=True))
    return [
        values[below] + (values[above] - values[below]) * (place - below)
        for place, (below, above) in zip(places, wanted, strict=True)
    ]


class _Ages(NamedTuple):
    """Ages in order, and the weight of so many first of them; without weights each counts once."""

    ages: Longs
    weights: Longs | None

    @classmethod
    def of(cls, ages: Longs, weight: Longs | None) -> Self:
        if weight is None:
            return cls(np.sort(ages), None)
        order = np.argsort(ages)
        return cls(ages[order], np.concatenate(([0], np.cumsum(weight[order]))))

    def before(self, ages: Longs) -> tuple[Longs, Longs]:
        """The number, and the weight, of those below each of the ages, which are in order."""
        # A few are looked up among many, and each moves the count of all that follow.
        places = np.searchsorted(ages, self.ages, "right")
        count = np.cumsum(np.bincount(places, minlength=len(ages) + 1))[: len(ages)]
        return count, self.of_first(count)

    def of_first(self, counts: Longs) -> Longs:
        """The weight of so many first ones."""
        return counts if self.weights is None else self.weights[counts]


def steps(stays: Stays | Sequence[Stay]) -> Steps:
    """
    Jumps of the survival curve, with late entry into observation.

    At risk at age t are the stays with entry < t <= exit, and at age 0 all with entry 0. At equal
    ages, ends come before censorings.
    """
    stays = Stays.of(stays)
    return steps_of_groups(stays, [len(stays)])[0]


def steps_of_groups(stays: Stays, ends: Sequence[int]) -> list[Steps]:
    """
    The jumps of the curve of each group; `ends`: the first ends before this place, the next one begins there.

    All are found at once, as if each group's ages began where those of the one before end: who was at risk
    in an earlier group has left by then. There may be thousands of small groups.
    """
    sizes = np.array([end - start for start, end in pairwise((0, *ends))], np.int64)
    group = np.repeat(np.arange(len(sizes)), sizes)
    # Ages fit 2^40 ms, 34 years, and groups 2^22, so that none runs over.
    span = int(stays.exit_ms.max(initial=0)) + 1
    weight, at_once, shift = stays.weight, stays.entry_ms == 0, group * span

    def ages(column: Longs, some: Flags) -> _Ages:
        return _Ages.of((column + shift)[some], None if weight is None else weight[some])

    done, cut_off = ages(stays.exit_ms, stays.placed), ages(stays.exit_ms, ~stays.placed)
    late = ages(stays.entry_ms, ~at_once)
    first = np.flatnonzero(np.diff(done.ages, prepend=-1))
    until = np.append(first[1:], len(done.ages))
    shifted_ms = done.ages[first]
    of_group, age_ms = np.divmod(shifted_ms, span)
    come, come_weight = late.before(shifted_ms)
    gone, gone_weight = cut_off.before(shifted_ms)
    # Those of all groups up to this one.
    begun = np.cumsum(np.bincount(group[at_once], minlength=len(sizes)))[of_group]
    begun_weight = begun
    if weight is not None:
        total = np.append(0, np.cumsum(np.where(at_once, weight, 0)))
        begun_weight = total[np.array(ends, np.int64)][of_group]
    found = Steps(
        age_ms,
        at_risk=begun_weight + come_weight - gone_weight - done.of_first(first),
        placed=done.of_first(until) - done.of_first(first),
        stays=begun + come - gone - first,
    )
    edges = np.searchsorted(of_group, np.arange(len(sizes) + 1)).tolist()
    return [found[slice(*edge)] for edge in pairwise(edges)]


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
        return cls.through(steps(stays), int(stays.exit_ms.max()))

    @classmethod
    def through(cls, found: Steps, largest_ms: int) -> Self:
        """The curve with these jumps, where so large an age was observed."""
        after = found.after
        lonely = np.flatnonzero((after == 0) & (found.age_ms < largest_ms))
        cut = bool(len(lonely))
        taken = found[: lonely[0]] if cut else found
        begins = np.empty(len(taken), np.bool_)
        begins[:1], begins[1:] = True, taken.at_risk[1:] != after[: max(len(taken) - 1, 0)]
        return cls(taken, largest_ms, cut, begins=np.flatnonzero(begins))

    def survival(self) -> Floats:
        """After each step."""
        after, at_first = self.steps.after, self.steps.at_risk[self.begins]
        until = np.append(self.begins, len(self.steps))[1:]
        before = np.cumprod(after[until - 1] / at_first)
        # The product of what came before each stretch.
        before[1:], before[:1] = before[:-1].copy(), 1.0
        return np.asarray(np.repeat(before / at_first, until - self.begins) * after)

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
    return survival_quantiles_of_groups([Stays.of(stays)], quantiles, few_below=few_below)[0]


def survival_quantiles_of_groups(
    groups: Sequence[Stays], quantiles: Sequence[float], *, few_below: int = 5
) -> list[list[Quantile] | None]:
    """The same of the stays of each group, of which there may be thousands of small ones."""
    found: list[list[Quantile] | None] = []
    for some in _batches([len(group) for group in groups]):
        together = groups[some]
        batch = together[0] if len(together) == 1 else Stays.joined(together)
        curves = steps_of_groups(batch, list(accumulate(map(len, together))))
        for jumps, group in zip(curves, together, strict=True):
            if not len(group):
                found.append(None)
                continue
            curve = Curve.through(jumps, int(group.exit_ms.max()))
            found.append(_quantiles(curve, quantiles, number=len(group), few_below=few_below))
    return found


def _batches(sizes: Sequence[int]) -> Iterator[slice]:
    """Groups that follow one another, with few enough stays together, where one has not more alone."""
    first = together = 0
    for place, size in enumerate(sizes):
        together += size
        if together > _TOGETHER and place > first:
            yield slice(first, place)
            first, together = place, size
    if sizes:
        yield slice(first, len(sizes))


def _quantiles(curve: Curve, quantiles: Sequence[float], *, number: int, few_below: int) -> list[Quantile]:
    """The percentiles on the curve of so many stays."""
    ended = 1 - curve.survival()
    thin = np.flatnonzero(curve.steps.stays < few_below)
    first_thin = 0 if number < few_below else int(thin[0]) if len(thin) else len(ended)
    found = []
    for quantile in quantiles:
        step = curve.reaches(quantile, ended)
        if step < len(ended):
            found.append(Quantile(value_ms=int(curve.steps.age_ms[step]), few=first_thin <= step))
        else:
            few = curve.cut or number < few_below or first_thin < len(ended)
            found.append(Quantile(value_ms=curve.largest_ms, lower_bound=True, few=few))
    return found


def _product(numbers: list[int]) -> int:
    """The product by halves: factors of like size keep big integers fast."""
    while len(numbers) > 1:
        numbers = [a * b for a, b in zip_longest(numbers[::2], numbers[1::2], fillvalue=1)]
    return numbers[0] if numbers else 1
