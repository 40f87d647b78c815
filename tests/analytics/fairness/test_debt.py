"""The debt: its laws, an integral by Simpson's rule, and an account that closes."""

import math
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.debt import Ledger, Stretch, carry_debt, forgiven_debt, ledger, most_owed_first
from domain.errors import DataError, PolicyError

HOUR_MS = 3_600_000
WEEK = timedelta(days=7)
DEBTS = st.floats(-1e6, 1e6)
GAPS = st.floats(-1e4, 1e4)
LENGTHS = st.integers(0, 400 * 24 * HOUR_MS)
HALF_LIVES = st.timedeltas(timedelta(minutes=1), timedelta(days=365))
MICRO_GPUS = st.integers(0, 1000 * 1_000_000)


@st.composite
def stretches(draw: st.DrawFn) -> list[Stretch]:
    """Stretches that follow each other."""
    ends = sorted(draw(st.lists(st.integers(0, 60 * 24 * HOUR_MS), min_size=1, max_size=12)))
    return [
        Stretch(start_ms=start, end_ms=end, entitled=draw(MICRO_GPUS), received=draw(MICRO_GPUS))
        for start, end in pairwise([0, *ends])
    ]


@given(DEBTS, GAPS, LENGTHS, LENGTHS, HALF_LIVES)
def test_two_short_steps_equal_one_long_step(
    debt: float, gap: float, first: int, second: int, half_life: timedelta
) -> None:
    between = carry_debt(debt, gap_gpus=gap, elapsed_ms=first, half_life=half_life)
    twice = carry_debt(between, gap_gpus=gap, elapsed_ms=second, half_life=half_life)
    once = carry_debt(debt, gap_gpus=gap, elapsed_ms=first + second, half_life=half_life)
    assert math.isclose(twice, once, rel_tol=1e-9, abs_tol=1e-6)


@given(DEBTS, GAPS, LENGTHS, LENGTHS, HALF_LIVES)
def test_what_is_forgiven_in_two_steps_is_what_is_forgiven_in_one(
    debt: float, gap: float, first: int, second: int, half_life: timedelta
) -> None:
    between = carry_debt(debt, gap_gpus=gap, elapsed_ms=first, half_life=half_life)
    parts = forgiven_debt(debt, gap_gpus=gap, elapsed_ms=first, half_life=half_life) + forgiven_debt(
        between, gap_gpus=gap, elapsed_ms=second, half_life=half_life
    )
    whole = forgiven_debt(debt, gap_gpus=gap, elapsed_ms=first + second, half_life=half_life)
    assert math.isclose(parts, whole, rel_tol=1e-9, abs_tol=1e-6)


@given(DEBTS, GAPS, st.integers(0, 14 * 24 * HOUR_MS))
def test_forgiven_is_the_integral_of_the_fading(debt: float, gap: float, length: int) -> None:
    # Simpson's rule over 200 pieces of the carried debt itself.
    pieces, rate = 200, math.log(2) / (WEEK / timedelta(hours=1))
    heights = [
        carry_debt(debt, gap_gpus=gap, elapsed_ms=length, half_life=WEEK)
        if i == pieces
        else carry_debt(debt, gap_gpus=gap, elapsed_ms=length * i // pieces, half_life=WEEK)
        for i in range(pieces + 1)
    ]
    weights = [1, *[4, 2] * (pieces // 2 - 1), 4, 1]
    area = sum(w * h for w, h in zip(weights, heights, strict=True)) * length / HOUR_MS / pieces / 3
    found = forgiven_debt(debt, gap_gpus=gap, elapsed_ms=length, half_life=WEEK)
    assert math.isclose(found, rate * area, rel_tol=1e-6, abs_tol=0.01)


def test_forgiven_is_no_residue_of_the_other_lines() -> None:
    # In a millisecond so little of a large debt fades that a difference of debts would lose it in rounding.
    debt, share = 1e9, 1 / (7 * 24 * HOUR_MS)
    faded = -math.expm1(-share * math.log(2)) * debt
    [stretch] = [Stretch(start_ms=0, end_ms=1, entitled=0, received=0)]
    found = (
        forgiven_debt(debt, gap_gpus=0, elapsed_ms=1, half_life=WEEK),
        ledger([stretch], opening=debt, half_life=WEEK).forgiven,
    )
    assert found == pytest.approx((faded, faded), rel=1e-12)


@given(stretches(), DEBTS, HALF_LIVES)
def test_a_ledger_closes_and_is_finite(found: list[Stretch], opening: float, half_life: timedelta) -> None:
    account = ledger(found, opening=opening, half_life=half_life)
    size = abs(opening) + account.entitled + account.received
    assert abs(account.unexplained) <= 1e-9 * (1 + size)
    assert all(
        math.isfinite(number)
        for number in (account.entitled, account.received, account.forgiven, account.closing)
    )


@given(stretches(), DEBTS)
def test_an_account_may_be_cut_anywhere(found: list[Stretch], opening: float) -> None:
    whole = ledger(found, opening=opening, half_life=WEEK)
    first = ledger(found[:1], opening=opening, half_life=WEEK)
    rest = ledger(found[1:], opening=first.closing, half_life=WEEK)
    assert rest.closing == whole.closing
    assert math.isclose(first.forgiven + rest.forgiven, whole.forgiven, rel_tol=1e-9, abs_tol=1e-6)


@given(GAPS.filter(lambda gap: abs(gap) > 1e-3), HALF_LIVES)
def test_a_constant_gap_ends_at_the_gap_times_the_mean_life(gap: float, half_life: timedelta) -> None:
    ages = 60 * (half_life // timedelta(milliseconds=1))
    limit = gap * (half_life / timedelta(hours=1)) / math.log(2)
    assert carry_debt(0.0, gap_gpus=gap, elapsed_ms=ages, half_life=half_life) == pytest.approx(limit)


def test_a_debt_of_a_week_ago_is_half() -> None:
    # 8 GPU-hours owed, then nothing new for a half-life: 4 left, 4 forgiven.
    quiet = Stretch(start_ms=0, end_ms=168 * HOUR_MS, entitled=0, received=0)
    account = ledger([quiet], opening=8.0, half_life=WEEK)
    assert replace(account, forgiven=round(account.forgiven, 9)) == Ledger(
        opening=8.0, entitled=0.0, received=0.0, forgiven=4.0, closing=4.0
    )


def test_a_starved_team_is_owed() -> None:
    # 2 GPUs short for a week: 2 * 168 / ln 2 * (1 - 1/2) = 242.37; 336 - 242.37 forgiven on the way.
    week = Stretch(start_ms=0, end_ms=168 * HOUR_MS, entitled=3_000_000, received=1_000_000)
    account = ledger([week], opening=0.0, half_life=WEEK)
    assert (account.entitled, account.received) == (504.0, 168.0)
    assert account.closing == pytest.approx(242.373, abs=1e-3)
    assert account.forgiven == pytest.approx(93.627, abs=1e-3)


def test_a_missing_half_life_is_an_error_and_no_reset() -> None:
    for half_life in (None, timedelta()):
        with pytest.raises(PolicyError, match="expected a positive length"):
            ledger([], opening=8.0, half_life=half_life)


def test_a_hole_is_not_filled_in() -> None:
    parts = [Stretch(start_ms=start, end_ms=start + 5, entitled=0, received=0) for start in (0, 6)]
    with pytest.raises(DataError, match="from 6 ms after one to 5 ms: expected no hole"):
        ledger(parts, opening=0.0, half_life=WEEK)
    with pytest.raises(DataError, match="expected the start first"):
        Stretch(start_ms=5, end_ms=4, entitled=0, received=0)


def test_whom_the_cluster_owes_most_comes_first() -> None:
    assert most_owed_first({"b": 0.0, "d": -3.0, "a": 0.0, "c": 2.5}) == ["c", "a", "b", "d"]
