"""
How sure a censored percentile is: its confidence interval, from the waits that it rests on.

Source: Greenwood 1926 for the variance; the transform log(-log S), which keeps the limits between 0 and 1,
of Kalbfleisch and Prentice 1980; limits of a quantile by where those of the curve cross it, Brookmeyer and
Crowley 1982. Klein and Moeschberger, sections 4.3 and 4.5. Definitions name none of them; lifelines and R
(`conf.type = "log-log"`) take the same.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from analytics.censored import Stay, steps

# The normal deviate of a two-sided 95 %.
_Z: Final = 1.959963984540054


class Limits(NamedTuple):
    """The survival curve after a jump, with the limits between which it lies with 95 % confidence."""

    age_ms: int
    survival: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """
    Limits of a percentile, milliseconds.

    None: the curve's own limit does not cross it, so that nothing bounds the percentile on that side
    but `largest_ms`, the largest age observed.
    """

    low_ms: int | None
    high_ms: int | None
    largest_ms: int


def curve(stays: Sequence[Stay]) -> Iterator[Limits]:
    """The curve with its limits; it ends where that of `survival_quantiles` does."""
    largest = max((stay.exit_ms for stay in stays), default=0)
    survival, variance = 1.0, 0.0
    for step in steps(stays):
        after = step.at_risk - step.placed
        if not after:
            if step.age_ms == largest:
                # The last jump to zero has no variance: nothing bounds the curve from above.
                yield Limits(step.age_ms, 0.0, 0.0, 1.0)
            return
        survival *= after / step.at_risk
        variance += step.placed / (step.at_risk * after)
        spread = math.exp(_Z * math.sqrt(variance) / -math.log(survival))
        yield Limits(step.age_ms, survival, survival**spread, survival ** (1 / spread))


def intervals(stays: Sequence[Stay], quantiles: Sequence[float]) -> list[Interval] | None:
    """The 95 % interval of each percentile; None where nothing was observed."""
    if not stays:
        return None
    largest = max(stay.exit_ms for stay in stays)
    low: dict[float, int] = {}
    high: dict[float, int] = {}
    for limits in curve(stays):
        for quantile in quantiles:
            if limits.low <= 1 - quantile:
                low.setdefault(quantile, limits.age_ms)
            if limits.high <= 1 - quantile:
                high.setdefault(quantile, limits.age_ms)
    return [
        Interval(low_ms=low.get(quantile), high_ms=high.get(quantile), largest_ms=largest)
        for quantile in quantiles
    ]
