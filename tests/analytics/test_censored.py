"""The survival estimate: hand cases, an independent implementation, and a stream with a known truth."""

import math
import random
import warnings
from fractions import Fraction
from statistics import NormalDist
from time import process_time
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter

from analytics.censored import (
    Quantile,
    Stay,
    Stays,
    started_quantile,
    steps,
    survival_quantiles,
    survival_quantiles_of_groups,
)

HOUR_MS = 3_600_000
QUANTILES = (0.5, 0.9, 0.99)


@st.composite
def stays(draw: st.DrawFn) -> list[Stay]:
    """Up to 40 stays on a small grid of ages, so that ties and zeros are common."""
    found = []
    for _ in range(draw(st.integers(1, 40))):
        exit_ms = draw(st.integers(0, 12))
        entry_ms = draw(st.integers(0, max(exit_ms - 1, 0)))
        found.append(Stay(entry_ms, exit_ms, exit_ms == 0 or draw(st.booleans())))
    return found


def test_nothing_observed_gives_no_percentile() -> None:
    assert survival_quantiles([], QUANTILES) is None
    assert started_quantile([], 0.5) is None


def test_the_started_percentile_interpolates_between_neighbours() -> None:
    # Place (4 - 1) * 0.9 = 2.7: 30 + 0.7 * (40 - 30).
    assert started_quantile([40, 10, 30, 20], 0.9) == pytest.approx(37.0)


def test_ends_come_before_censorings_of_the_same_age() -> None:
    both = [Stay(0, 60, placed=True), Stay(0, 60, placed=False)]
    found = steps(both)
    assert (found.at_risk.tolist(), found.placed.tolist()) == ([2], [1])


def test_a_stay_that_enters_at_an_age_is_not_at_risk_at_that_age() -> None:
    late = [Stay(0, 60, placed=True), Stay(60, 90, placed=True)]
    found = steps(late)
    assert (found.age_ms.tolist(), found.at_risk.tolist()) == ([60, 90], [1, 1])


def test_the_curve_ends_where_a_lonely_jump_would_hide_a_larger_age() -> None:
    found = survival_quantiles([Stay(0, 60, placed=True), Stay(3000, 9000, placed=False)], [0.5])
    assert found == [Quantile(value_ms=9000, lower_bound=True, few=True)]


def test_the_last_jump_to_zero_is_taken() -> None:
    assert survival_quantiles([Stay(0, 60, placed=True)], [0.99]) == [Quantile(value_ms=60, few=True)]


def test_many_without_an_end_are_a_lower_bound_and_not_few() -> None:
    waiting = [Stay(0, age, placed=False) for age in range(1, 6)]
    assert survival_quantiles(waiting, [0.5]) == [Quantile(value_ms=5, lower_bound=True)]


def test_a_percentile_hit_exactly_is_not_lost_to_floating_point() -> None:
    # After 90 of 100 ends the share is exactly 0.9, while the product of floats may miss it.
    for count in (10, 100, 1000, 3000):
        one_by_one = [Stay(0, age, placed=True) for age in range(1, count + 1)]
        found = survival_quantiles(one_by_one, [0.1, 0.5, 0.9])
        assert found is not None
        assert [quantile.value_ms for quantile in found] == [count // 10, count // 2, count * 9 // 10]


@given(stays(), st.sampled_from([0.25, 0.5, 0.9, 0.99]))
def test_the_percentile_is_that_of_the_exact_curve(observed: list[Stay], quantile: float) -> None:
    largest = max(stay.exit_ms for stay in observed)
    survival, expected = Fraction(1), None
    for age in sorted({stay.exit_ms for stay in observed if stay.placed}):
        at_risk = sum(
            (stay.entry_ms < age or age == stay.entry_ms == 0) and age <= stay.exit_ms for stay in observed
        )
        ended = sum(stay.placed and stay.exit_ms == age for stay in observed)
        if ended == at_risk and age < largest:
            break
        survival *= 1 - Fraction(ended, at_risk)
        if expected is None and 1 - survival >= Fraction(str(quantile)):
            expected = age
    found = survival_quantiles(observed, [quantile])
    assert found is not None
    assert (found[0].value_ms, found[0].lower_bound) == (
        expected or (0 if expected == 0 else largest),
        expected is None,
    )


@given(stays(), st.randoms())
def test_the_order_of_stays_does_not_matter(observed: list[Stay], order: random.Random) -> None:
    shuffled = order.sample(observed, len(observed))
    assert survival_quantiles(shuffled, QUANTILES) == survival_quantiles(observed, QUANTILES)


@given(stays())
def test_the_curve_is_that_of_lifelines_until_it_ends(observed: list[Stay]) -> None:
    # lifelines counts an entry at age t as at risk at t, and wants entries before ends: ages move by
    # one, late entries by one and a half, which changes no order.
    # It refuses data in which nobody is at risk for a while, so two stays cover all ages.
    observed = [*observed, Stay(0, 13, placed=False), Stay(0, 13, placed=False)]
    fitter = KaplanMeierFitter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitter.fit(
            [stay.exit_ms + 1 for stay in observed],
            [stay.placed for stay in observed],
            entry=[stay.entry_ms + 1.5 if stay.entry_ms else 0 for stay in observed],
        )
    theirs = fitter.survival_function_.iloc[:, 0]
    survival = 1.0
    found = steps(observed)
    for age_ms, at_risk, placed in zip(found.age_ms, found.at_risk, found.placed, strict=True):
        survival *= 1 - placed / at_risk
        assert fitter.event_table.at_risk[age_ms + 1] == at_risk
        assert theirs[age_ms + 1] == pytest.approx(survival, abs=1e-9)


MEDIAN_S, SIGMA = 63.0, 2.0  # a tail in which the p99, 1.8 h, is longer than the shortest window
LONGEST_MS = 12 * HOUR_MS


def _true_quantile_ms(quantile: float) -> float:
    return 1000 * MEDIAN_S * math.exp(SIGMA * NormalDist().inv_cdf(quantile))


def _seen_in(window_ms: int, *, arrivals: int) -> list[Stay]:
    """What a window sees of a stationary stream with about that many arrivals in it."""
    stream = random.Random(window_ms)
    rate = arrivals / window_ms
    at_ms, found = -float(LONGEST_MS), []
    while (at_ms := at_ms + stream.expovariate(rate)) < window_ms:
        wait_ms = min(stream.lognormvariate(math.log(1000 * MEDIAN_S), SIGMA), LONGEST_MS)
        if at_ms + wait_ms > 0:
            entry_ms, until_ms = max(-at_ms, 0), min(at_ms + wait_ms, window_ms)
            found.append(Stay(math.ceil(entry_ms), math.ceil(until_ms - at_ms), at_ms + wait_ms < window_ms))
    return [stay for stay in found if stay.entry_ms < stay.exit_ms]


@pytest.mark.parametrize("hours", [1, 6, 24, 168])
def test_the_estimate_converges_to_the_truth_whatever_the_window(hours: int) -> None:
    errors = []
    for arrivals in (500, 20_000):
        found = survival_quantiles(_seen_in(hours * HOUR_MS, arrivals=arrivals), QUANTILES)
        assert found is not None
        errors.append(
            [abs(each.value_ms / _true_quantile_ms(p) - 1) for each, p in zip(found, QUANTILES, strict=True)]
        )
    # Three standard errors of a quantile of 20,000: sqrt(p (1 - p) / n) * sigma / density.
    tolerances = [
        3 * math.sqrt(p * (1 - p) / 20_000) * SIGMA / NormalDist().pdf(NormalDist().inv_cdf(p))
        for p in QUANTILES
    ]
    assert all(error <= tolerance for error, tolerance in zip(errors[1], tolerances, strict=True))
    assert sum(errors[1]) < sum(errors[0])


def test_without_delayed_entry_a_short_window_is_far_off() -> None:
    seen = _seen_in(HOUR_MS, arrivals=2000)
    naive = survival_quantiles([Stay(0, stay.exit_ms, stay.placed) for stay in seen], [0.99])
    assert naive is not None
    assert naive[0].value_ms > 3 * _true_quantile_ms(0.99)


def test_a_million_stays_take_seconds() -> None:
    stream = random.Random(1)
    many = [Stay(0, stream.randrange(10**8), stream.random() < 0.9) for _ in range(1_000_000)]
    begin = process_time()
    survival_quantiles(many, QUANTILES)
    assert process_time() - begin < 8  # measured 3 CPU-seconds; the bound allows a slow machine


@given(st.lists(st.tuples(stays(), st.booleans()), max_size=5), st.integers(1, 100))
def test_groups_are_found_at_once_as_each_by_itself(drawn: list[tuple[list[Stay], bool]], most: int) -> None:
    # Some groups have weights and others none; they come in lots of about as many stays.
    groups = [
        [stay._replace(weight=1 + place % 3) for place, stay in enumerate(some)] if is_weighed else some
        for some, is_weighed in drawn
    ]
    alone = [survival_quantiles(group, (0.5, 0.9)) for group in groups]
    with patch("analytics.censored._TOGETHER", most):
        assert survival_quantiles_of_groups([Stays.of(group) for group in groups], (0.5, 0.9)) == alone
