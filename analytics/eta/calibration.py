"""How intervals are kept honest: by what came of those that were told before."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from analytics.eta.estimate import TAIL, UNCALIBRATED, Widths

# How far one miss moves the logarithm of a width, and between which bounds a width stays. Narrow ones are
# dearly paid for when a burst comes, so that it is hardly narrowed.
_STEP: Final = 0.05
_BOUNDS: Final = (0.85, 2.0)


class Told(NamedTuple):
    """An interval that was told, with when, of which band and class: milliseconds from then."""

    at_ms: int
    band: int
    service_class: str
    low_ms: float
    median_ms: float
    high_ms: float


class Outcome(NamedTuple):
    """
    What came of it: from when on that is known, and on which side of the interval it fell.

    -1: it started before, 0: inside, 1: later. That it is late is known once the interval is over.
    """

    told: Told
    known_ms: int
    side: int


def outcome(told: Told, placed_ms: int | None, ended_ms: int | None, as_of_ms: int) -> Outcome | None:
    """
    What came of an interval by an instant; None where that is open, or will never be known.

    Whoever gave up inside the interval, or before it, might have started in it.
    """
    waits_ms = [at_ms for at_ms in (placed_ms, ended_ms, as_of_ms) if at_ms is not None and at_ms <= as_of_ms]
    left_ms = min(waits_ms) - told.at_ms
    if left_ms > told.high_ms:
        return Outcome(told, told.at_ms + int(told.high_ms) + 1, 1)
    if placed_ms is None or placed_ms != min(waits_ms) or placed_ms >= as_of_ms:
        return None
    return Outcome(told, placed_ms, -1 if left_ms < told.low_ms else 0)


class Calibration:
    """
    The widths for each band and class: each outcome moves them towards 10 % of misses on either side.

    Source: Gibbs and Candes 2021, adaptive conformal inference, eq. 2; here for either end apart, and for
    the logarithm of its distance from the median in the place of a level, so that it may leave what was seen.
    """

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self._widths: dict[tuple[int, str], Widths] = {}
        for one in sorted(outcomes, key=lambda each: each.known_ms):
            self.learn(one)

    def learn(self, one: Outcome) -> None:
        """Take an outcome in; in the order in which they became known."""
        key = one.told.band, one.told.service_class
        low, high = self._widths.get(key, UNCALIBRATED)
        self._widths[key] = Widths(_moved(low, missed=one.side < 0), _moved(high, missed=one.side > 0))

    def widths(self, band: int, service_class: str) -> Widths:
        """Those of a band and class; 1 where nobody learned yet."""
        return self._widths.get((band, service_class), UNCALIBRATED)


def _moved(width: float, *, missed: bool) -> float:
    return min(max(width * math.exp(_STEP * (missed - TAIL)), _BOUNDS[0]), _BOUNDS[1])


@dataclass(frozen=True, slots=True)
class Held:
    """How many intervals had an outcome, and how many of them held it."""

    intervals: int
    held: int

    @property
    def ratio(self) -> float | None:
        """The share that held; None where there was none."""
        return self.held / self.intervals if self.intervals else None


def held(outcomes: Iterable[Outcome]) -> dict[tuple[int, str], Held]:
    """How many held, by band and class."""
    counts: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for one in outcomes:
        of = counts[one.told.band, one.told.service_class]
        of[0] += 1
        of[1] += one.side == 0
    return {key: Held(*of) for key, of in counts.items()}
