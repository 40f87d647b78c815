"""What would have been told of past waits: from an instant on, by what had come of what was told before."""

import numpy as np

from analytics.eta.calibration import Told
from analytics.eta.estimate import UNCALIBRATED, Estimate, Past
from analytics.eta.replay import ask_of, replay
from analytics.eta.waits import Waits
from domain.window import MS_PER_HOUR as HOUR
from tests.analytics.eta.test_estimate import NOON, waits


def past() -> Waits:
    """Waits of 31 to 130 minutes in no order, of late three times as long."""
    lengths = [31 + number * 37 % 100 for number in range(60)]
    return waits([*lengths, *(3 * one for one in lengths[:20])], apart=200)


def told(of: Waits, *, from_ms: int = 0, as_of_ms: int = NOON) -> list[tuple[int, Told, Estimate]]:
    found = replay(of, classes=["batch"], from_ms=from_ms, as_of_ms=as_of_ms)
    return [(wait, said, estimate) for wait, _, said, estimate in found]


def test_intervals_become_wider_once_starts_came_too_late() -> None:
    known = past()
    plain = Past.of(known, NOON)
    wait, said, found = told(known)[-1]
    without = plain.estimate(ask_of(known, wait), said.at_ms, UNCALIBRATED)
    assert isinstance(without, Estimate)
    assert found.high_ms > without.high_ms
    assert (said.low_ms, said.median_ms, said.high_ms) == (found.low_ms, found.median_ms, found.high_ms)


def test_what_came_later_changes_nothing_that_was_told() -> None:
    known = past()
    middle_ms = NOON - 60 * HOUR
    early = [one for one in told(known) if one[1].at_ms < middle_ms]
    assert early
    assert told(known.at(known.submitted_ms < middle_ms), as_of_ms=middle_ms) == early


def test_nothing_is_told_of_moments_before_the_first_one() -> None:
    known = past()
    from_ms = NOON - 60 * HOUR
    instants = np.array([said.at_ms for _, said, _ in told(known, from_ms=from_ms)])
    assert len(instants)
    assert instants.min() >= from_ms
    assert min(said.at_ms for _, said, _ in told(known)) < from_ms
