"""Kueue's weighted share, as Kueue computes it."""

from math import isfinite

from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.kueue_share import (
    KUEUE_LARGEST,
    FlavorUse,
    WeightedShare,
    borrowed,
    lendable,
    weighted_share,
)

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "gpu", "memory"]), st.integers(0, 10**18))


@given(AMOUNTS, AMOUNTS, st.integers(0, 5000))
def test_a_share_is_finite_or_has_a_reason(
    borrowing: dict[str, int], lent: dict[str, int], weight_milli: int
) -> None:
    share = weighted_share(borrowing, lent, weight_milli=weight_milli)
    assert (share.per_mille is None) == bool(share.undefined_because)
    assert share.per_mille is None or (isfinite(share.per_mille) and share.per_mille >= 0)
    assert share.as_written >= 0


def test_five_of_forty_borrowed_is_125_and_half_of_it_with_weight_two() -> None:
    shares = [weighted_share({"gpu": 5}, {"gpu": 40}, weight_milli=weight) for weight in (1000, 2000)]
    assert [(share.per_mille, share.as_written) for share in shares] == [(125.0, 125), (62.5, 63)]


def test_flavors_of_one_resource_add_up() -> None:
    uses = [FlavorUse(resource="gpu", nominal=4, used=6), FlavorUse(resource="gpu", nominal=4, used=1)]
    assert borrowed(uses, in_cohort=True) == {"gpu": 2}
    assert lendable([uses], cohort_quota={"gpu": 2}) == {"gpu": 10}


def test_of_equal_resources_the_first_by_name_is_dominant() -> None:
    share = weighted_share({"gpu": 1, "cpu": 1}, {"gpu": 4, "cpu": 4}, weight_milli=1000)
    assert share == WeightedShare(per_mille=250.0, as_written=250, resource="cpu")


def test_a_queue_of_weight_zero_that_borrows_has_kueues_largest_number_and_no_share() -> None:
    share = weighted_share({"gpu": 1}, {"gpu": 4}, weight_milli=0)
    assert (share.per_mille, share.as_written) == (None, KUEUE_LARGEST)
    idle = weighted_share({"gpu": 0}, {"gpu": 4}, weight_milli=0)
    assert idle == WeightedShare(per_mille=0.0, as_written=0)
