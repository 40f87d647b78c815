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


def test_misses_move_their_side_for_all_and_most_for_their_band_and_class() -> None:
    late = Calibration(Outcome(TOLD, number, 1) for number in range(2))
    # Two misses, each nine tenths of a step of 0.2 for all, for the band and for the class.
    low, high = -2 * 0.1 * 0.2, 2 * 0.9 * 0.2
    assert late.margins(0, "batch") == pytest.approx((3 * low, 3 * high), rel=0.001)
    assert late.margins(1, "batch") == late.margins(0, "interactive")
    assert late.margins(1, "batch") == pytest.approx((2 * low, 2 * high), rel=0.001)
    assert late.margins(1, "interactive") == pytest.approx((low, high), rel=0.001)
    assert Calibration().margins(0, "batch") == (0, 0)


def test_a_burst_is_one_event_however_many_are_in_it() -> None:
    one, burst = (Calibration(Outcome(TOLD, 5, 1, number) for _ in range(number)) for number in (1, 400))
    assert burst.margins(0, "batch") == pytest.approx(one.margins(0, "batch"), rel=0.001)


def test_the_longer_it_is_learned_the_less_an_event_moves() -> None:
    def last(before: int) -> float:
        """How far the last of so many and one moves the high end of another band and class."""
        events = [Outcome(TOLD, number, 1 if number % 10 == 0 else 0) for number in range(before + 1)]
        known, all_ = Calibration(events[:-1]), Calibration(events)
        return all_.margins(1, "other").high - known.margins(1, "other").high

    assert last(0) == pytest.approx(0.9 * 0.2)
    assert last(3000) == pytest.approx(0.9 * 0.1)


def test_one_miss_in_ten_on_either_side_leaves_it_as_it_is() -> None:
    sides = [-1, *[0] * 8, 1] * 30
    found = Calibration(Outcome(TOLD, number, side) for number, side in enumerate(sides)).margins(0, "batch")
    # To within one step of each of the three groups.
    assert found == pytest.approx((0, 0), abs=3 * 0.2)


def test_margins_stay_between_their_bounds() -> None:
    for side, bound in ((0, -0.3), (1, 1.2)):
        found = Calibration(Outcome(TOLD, number, side) for number in range(500))
        for band, name in ((0, "batch"), (1, "interactive")):
            assert found.margins(band, name).high == pytest.approx(bound)


def test_how_many_held_is_counted_by_band_and_class() -> None:
    other = TOLD._replace(service_class="interactive")
    found = held([Outcome(TOLD, 1, 0), Outcome(TOLD, 2, 1), Outcome(other, 3, -1)])
    assert found == {(0, "batch", False): Held(2, 1), (0, "interactive", False): Held(1, 0)}
    assert (found[0, "batch", False].ratio, Held(0, 0).ratio) == (0.5, None)


def test_what_waits_again_is_counted_by_itself() -> None:
    found = held([Outcome(TOLD, 1, 0), Outcome(TOLD._replace(again=True), 2, 1)])
    assert found == {(0, "batch", False): Held(1, 1), (0, "batch", True): Held(1, 0)}
