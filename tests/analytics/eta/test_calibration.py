"""What came of an interval, and how later ones are moved by it."""

import pytest

from analytics.eta.calibration import Calibration, Held, Outcome, Told, held, outcome

TOLD = Told(at_ms=1000, band=0, service_class="batch", low_ms=100, median_ms=200, high_ms=400)


@pytest.mark.parametrize(
    ("placed_ms", "ended_ms", "as_of_ms", "side", "known_ms"),
    [
        (1050, None, 2000, -1, 1050),
        (1300, 1500, 2000, 0, 1300),
        (1400, None, 2000, 0, 1400),
        (1900, None, 2000, 1, 1401),
        # It is late as soon as the interval is over, whatever comes of it.
        (None, None, 1402, 1, 1401),
        (None, 1600, 2000, 1, 1401),
    ],
)
def test_an_interval_has_an_outcome(
    placed_ms: int | None, ended_ms: int | None, as_of_ms: int, side: int, known_ms: int
) -> None:
    assert outcome(TOLD, placed_ms, ended_ms, as_of_ms) == Outcome(TOLD, known_ms, side)


@pytest.mark.parametrize(
    ("placed_ms", "ended_ms", "as_of_ms"),
    [
        (None, None, 1300),
        # It gave up inside: it might have started there.
        (None, 1200, 2000),
        # It starts later than that, which nobody knows yet.
        (1300, None, 1300),
    ],
)
def test_an_interval_that_is_open_or_was_given_up_has_none(
    placed_ms: int | None, ended_ms: int | None, as_of_ms: int
) -> None:
    assert outcome(TOLD, placed_ms, ended_ms, as_of_ms) is None


def test_misses_move_their_side_most_of_all_for_their_band_and_class() -> None:
    late = Calibration(Outcome(TOLD, number, 1) for number in range(10))
    own, others = late.margins(0, "batch"), late.margins(1, "batch")
    # Ten misses, each nine tenths of a step: of 0.02 for the cell, of 0.01 for all.
    assert own == pytest.approx((-10 * 0.1 * 0.03, 10 * 0.9 * 0.03))
    assert others == late.margins(0, "interactive") == pytest.approx((-10 * 0.1 * 0.01, 10 * 0.9 * 0.01))
    assert Calibration().margins(0, "batch") == (0, 0)


def test_one_miss_in_ten_on_either_side_leaves_it_as_it_is() -> None:
    sides = [-1, *[0] * 8, 1] * 30
    found = Calibration(Outcome(TOLD, number, side) for number, side in enumerate(sides)).margins(0, "batch")
    assert found == pytest.approx((0, 0), abs=0.03)


def test_margins_stay_between_their_bounds() -> None:
    for side, bound in ((0, -0.2), (1, 0.5)):
        found = Calibration(Outcome(TOLD, number, side) for number in range(500))
        assert found.margins(0, "batch").high == pytest.approx(2 * bound)


def test_how_many_held_is_counted_by_band_and_class() -> None:
    other = TOLD._replace(service_class="interactive")
    found = held([Outcome(TOLD, 1, 0), Outcome(TOLD, 2, 1), Outcome(other, 3, -1)])
    assert found == {(0, "batch"): Held(2, 1), (0, "interactive"): Held(1, 0)}
    assert (found[0, "batch"].ratio, Held(0, 0).ratio) == (0.5, None)
