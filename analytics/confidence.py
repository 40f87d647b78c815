"""
How sure a censored percentile is: its confidence interval, from the waits that it rests on.

Source: Greenwood 1926 for the variance; the transform log(-log S), which keeps the limits between 0 and 1,
of Kalbfleisch and Prentice 1980; limits of a quantile by where those of the curve cross it, Brookmeyer and
Crowley 1982. Klein and Moeschberger, sections 4.3 and 4.5. Definitions name none of them; lifelines and R
(`conf.type = "log-log"`) take the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from analytics.censored import Curve, Flags, Floats, Longs, Stay, Stays

# The normal deviate of a two-sided 95 %.
_Z: Final = 1.959963984540054


class Limits(NamedTuple):
    """The survival curve after each jump, with the limits between which it lies with 95 % confidence."""

    age_ms: Longs
    survival: Floats
    low: Floats
    high: Floats


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


def limits(curve: Curve) -> Limits:
    """The limits of a curve; after a last jump to zero there is no variance, and nothing bounds it above."""
    taken, survival = curve.steps, curve.survival()
    zero = int(len(taken) > 0 and taken.after[-1] == 0)
    within = slice(0, len(taken) - zero)
    share, after = survival[within], taken.after[within]
    variance = np.cumsum(taken.placed[within] / (taken.at_risk[within] * after))
    spread = np.exp(_Z * np.sqrt(variance) / -np.log(share))
    return Limits(
        taken.age_ms,
        survival,
        low=np.append(share**spread, [0.0] * zero),
        high=np.append(share ** (1 / spread), [1.0] * zero),
    )


def intervals(stays: Stays | Sequence[Stay], quantiles: Sequence[float]) -> list[Interval] | None:
    """The 95 % interval of each percentile; None where nothing was observed."""
    stays = Stays.of(stays)
    if not len(stays):
        return None
    curve = Curve.of(stays)
    found = limits(curve)

    def first(crossed: Flags) -> int | None:
        return int(found.age_ms[np.argmax(crossed)]) if crossed.any() else None

    return [
        Interval(
            low_ms=first(found.low <= 1 - quantile),
            high_ms=first(found.high <= 1 - quantile),
            largest_ms=curve.largest_ms,
        )
        for quantile in quantiles
    ]
