"""How intervals are kept honest: by what came of those that were told before."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from analytics.eta.estimate import TAIL, UNCALIBRATED, Margins

# How far the first event of a group moves its ends; after so many events it is less by the root of two.
_STEP: Final = 0.2
_LESS_AFTER: Final = 1000
# Between which bounds the margin of a group stays, and their sum: a tail of 3 % to 13.5 %. Ends that are
# drawn in further are dearly paid for in a burst.
_BOUNDS: Final = (-0.3, 1.2)
# Of all, of a band, of a class.
_Group: TypeAlias = int | str | None


class Told(NamedTuple):
    """An interval that was told, when, of which band and class: ms from then. `again`: of no first wait."""

    at_ms: int
    band: int
    service_class: str
    low_ms: float
    median_ms: float
    high_ms: float
    again: bool = False


class Outcome(NamedTuple):
    """
    What came of it: from when on that is known, and on which side of the interval it fell.

    -1: it started before, 0: inside, 1: later. That it is late is known once the interval is over.
    `together`: how many were told in the same hour of the same band and class, which count as one event.
    """

    told: Told
    known_ms: int
    side: int
    together: int = 1


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
    The margins of all, of each band, of each class: an event moves them towards 10 % of misses on a side.

    Those of an estimate are the sum of its three groups, so a class of which little is known has those of the
    others, and each group is held by itself to what it was meant to hold. What was told within an hour has
    one cause: a burst of a thousand is one event, and not a thousand.

    Source: Gibbs and Candes 2021, adaptive conformal inference, eq. 2, for either end apart, and for the
    logarithm of the level, which then never leaves what was seen; steps that become smaller: Angelopoulos,
    Barber and Bates 2024; groups that overlap: Bastani et al. 2022, multivalid conformal prediction.
    """

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self._groups: dict[_Group, Margins] = {}
        self._events: defaultdict[_Group, float] = defaultdict(float)
        for one in sorted(outcomes, key=lambda each: each.known_ms):
            self.learn(one)

    def learn(self, one: Outcome) -> None:
        """Take an outcome in; in the order in which they became known."""
        for group in (None, one.told.band, one.told.service_class):
            step = _STEP / math.sqrt(1 + self._events[group] / _LESS_AFTER) / one.together
            self._events[group] += 1 / one.together
            margins = self._groups.get(group, UNCALIBRATED)
            self._groups[group] = Margins(
                _bounded(margins.low + step * ((one.side < 0) - TAIL)),
                _bounded(margins.high + step * ((one.side > 0) - TAIL)),
            )

    def margins(self, band: int, service_class: str) -> Margins:
        """Those of a band and class; 0 where nobody learned yet."""
        found = [self._groups.get(group, UNCALIBRATED) for group in (None, band, service_class)]
        return Margins(_bounded(sum(one.low for one in found)), _bounded(sum(one.high for one in found)))


def _bounded(margin: float) -> float:
    return min(max(margin, _BOUNDS[0]), _BOUNDS[1])


@dataclass(frozen=True, slots=True)
class Held:
    """How many intervals had an outcome, and how many of them held it."""

    intervals: int
    held: int

    @property
    def ratio(self) -> float | None:
        """The share that held; None where there was none."""
        return self.held / self.intervals if self.intervals else None


def held(outcomes: Iterable[Outcome]) -> dict[tuple[int, str, bool], Held]:
    """How many held, by band, class, and whether it was no first wait."""
    counts: dict[tuple[int, str, bool], list[int]] = defaultdict(lambda: [0, 0])
    for one in outcomes:
        of = counts[one.told.band, one.told.service_class, one.told.again]
        of[0] += 1
        of[1] += one.side == 0
    return {key: Held(*of) for key, of in counts.items()}
