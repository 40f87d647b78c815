"""How intervals are kept honest: by what came of those that were told before."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from analytics.eta.estimate import TAIL, UNCALIBRATED, Margins

# How far one miss moves an end: of its band and class, and of all of the cluster. And between which bounds
# either stays: intervals that are too narrow are dearly paid for when a burst comes.
_STEP: Final = 0.02
_STEP_OF_ALL: Final = 0.01
_BOUNDS: Final = (-0.2, 0.5)


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
    The margins of each band and class, and of all: each outcome moves them towards 10 % of misses on a side.

    Source: Gibbs and Candes 2021, adaptive conformal inference, eq. 2; here for either end apart, and for
    the logarithm of the end in the place of a level, so that it may leave what was seen. Of all together a
    cell of which little is known yet learns too.
    """

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self._cells: dict[tuple[int, str], Margins] = {}
        self._all = UNCALIBRATED
        for one in sorted(outcomes, key=lambda each: each.known_ms):
            self.learn(one)

    def learn(self, one: Outcome) -> None:
        """Take an outcome in; in the order in which they became known."""
        key = one.told.band, one.told.service_class
        self._cells[key] = _learned(self._cells.get(key, UNCALIBRATED), one.side, _STEP)
        self._all = _learned(self._all, one.side, _STEP_OF_ALL)

    def margins(self, band: int, service_class: str) -> Margins:
        """Those of a band and class; 0 where nobody learned yet."""
        cell = self._cells.get((band, service_class), UNCALIBRATED)
        return Margins(cell.low + self._all.low, cell.high + self._all.high)


def _learned(margins: Margins, side: int, step: float) -> Margins:
    def moved(margin: float, *, missed: bool) -> float:
        return min(max(margin + step * (missed - TAIL), _BOUNDS[0]), _BOUNDS[1])

    return Margins(moved(margins.low, missed=side < 0), moved(margins.high, missed=side > 0))


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
