"""Weighted max-min: the laws, and an independent water filling."""

from fractions import Fraction
from math import ceil, floor
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.maxmin import Claim, max_min, whole_parts
from tests.analytics.fairness.pools import claims, poured

AMOUNT = st.integers(0, 60)


@given(AMOUNT, claims())
def test_shares_are_those_of_a_water_filling_by_the_book(amount: int, asked: list[Claim]) -> None:
    by_the_book = poured(amount, asked)
    for share, exact in zip(max_min(amount, asked), by_the_book, strict=True):
        assert floor(exact) <= share <= ceil(exact)


@given(AMOUNT, claims())
def test_shares_take_the_amount_or_all_caps(amount: int, asked: list[Claim]) -> None:
    assert sum(max_min(amount, asked)) == min(amount, sum(claim.cap for claim in asked))


@given(AMOUNT, claims())
def test_no_share_is_above_its_cap_or_below_nothing(amount: int, asked: list[Claim]) -> None:
    assert all(0 <= share <= claim.cap for share, claim in zip(max_min(amount, asked), asked, strict=True))


@given(AMOUNT, claims())
def test_a_weight_of_zero_gets_only_what_positive_weights_do_not_want(
    amount: int, asked: list[Claim]
) -> None:
    shares = max_min(amount, asked)
    last = sum(share for share, claim in zip(shares, asked, strict=True) if claim.weight == 0)
    wanted = sum(claim.cap for claim in asked if claim.weight > 0)
    assert last <= max(0, amount - wanted)


@given(AMOUNT, claims(), st.integers(1, 1000))
def test_only_the_proportion_of_weights_counts(amount: int, asked: list[Claim], times: int) -> None:
    heavier = [Claim(claim.cap, claim.weight * times) for claim in asked]
    assert max_min(amount, heavier) == max_min(amount, asked)


@given(AMOUNT, claims())
def test_in_units_fine_enough_shares_scale(amount: int, asked: list[Claim]) -> None:
    # Whole shares are within one unit of the exact ones, in whatever unit.
    fine = max_min(amount * 10**6, [Claim(claim.cap * 10**6, claim.weight) for claim in asked])
    for share, exact in zip(fine, poured(amount, asked), strict=True):
        assert abs(share - exact * 10**6) < 1


@given(AMOUNT, claims(), st.randoms())
def test_the_order_of_claims_moves_at_most_the_unit_that_cannot_be_cut(
    amount: int, asked: list[Claim], random: Random
) -> None:
    order = list(range(len(asked)))
    random.shuffle(order)
    shuffled = max_min(amount, [asked[i] for i in order])
    shares = max_min(amount, asked)
    assert all(abs(shares[i] - share) <= 1 for i, share in zip(order, shuffled, strict=True))


@given(st.lists(st.fractions(0, 9), max_size=6))
def test_whole_parts_sum_to_the_whole(exact: list[Fraction]) -> None:
    parts = whole_parts(exact)
    assert sum(parts) == floor(sum(exact, Fraction(0)))
    assert all(floor(part) <= whole <= ceil(part) for part, whole in zip(exact, parts, strict=True))


def test_nobody_asks_and_nobody_gets() -> None:
    assert max_min(8, []) == []
    assert max_min(0, [Claim(3, 1), Claim(3, 0)]) == [0, 0]
