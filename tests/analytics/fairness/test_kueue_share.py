"""Kueue's weighted share, as Kueue computes it."""

from json import dumps
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.kueue_share import (
    KUEUE_LARGEST,
    FlavorUse,
    WeightedShare,
    borrowed,
    weighted_share,
)
from analytics.fairness.kueue_shares import kueue_sites
from domain.metric import Row

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


def test_of_equal_resources_the_first_by_name_is_dominant() -> None:
    share = weighted_share({"gpu": 1, "cpu": 1}, {"gpu": 4, "cpu": 4}, weight_milli=1000)
    assert share == WeightedShare(per_mille=250.0, as_written=250, resource="cpu")


def test_a_queue_of_weight_zero_that_borrows_has_kueues_largest_number_and_no_share() -> None:
    share = weighted_share({"gpu": 1}, {"gpu": 4}, weight_milli=0)
    assert (share.per_mille, share.as_written) == (None, KUEUE_LARGEST)
    idle = weighted_share({"gpu": 0}, {"gpu": 4}, weight_milli=0)
    assert idle == WeightedShare(per_mille=0.0, as_written=0)


# Quota, lending limit or none, and use of each queue; the cohort's own quota.
QUEUES = st.lists(
    st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(0, 19)), min_size=1, max_size=5
)


def rows_of(queues: list[tuple[int, int | None, int]], own: int, *, parent: str = "") -> list[Row]:
    """Terms and uses of queues in one cohort, named in the order given."""
    blank: Row = {
        "cluster": "c",
        "parent": "",
        "weight_milli": 1000,
        "flavor": "f",
        "resources": "",
        "number": 0,
    }
    cohort = {
        "what": "Cohort",
        "queue": "all",
        "parent": parent,
        "quotas": dumps([["f", "gpu", own, None, None]]),
    }
    found: list[Row] = [{**blank, **cohort}]
    for number, (nominal, lending, used) in enumerate(queues):
        name = f"q{number}"
        quotas = dumps([["f", "gpu", nominal, lending, None]])
        found.append({**blank, "what": "ClusterQueue", "queue": name, "parent": "all", "quotas": quotas})
        found.append({**blank, "what": "use", "queue": name, "resources": dumps({"gpu": used}), "number": 1})
    return found


@given(QUEUES, st.integers(0, 9))
def test_shares_are_what_is_borrowed_of_what_can_be_lent(
    queues: list[tuple[int, int | None, int]], own: int
) -> None:
    (site,) = kueue_sites(rows_of(queues, own)).values()
    lent = own + sum(nominal if most is None else min(nominal, most) for nominal, most, _ in queues)
    for number, (nominal, _, used) in enumerate(queues):
        over = max(used - nominal, 0)
        expected = 1000 * over / lent if lent and over else 0.0
        assert site.share(f"q{number}").per_mille == pytest.approx(expected)


@given(QUEUES, st.integers(0, 9), st.integers(0, 9))
def test_a_cohort_above_that_has_nothing_changes_no_share(
    queues: list[tuple[int, int | None, int]], own: int, more: int
) -> None:
    (alone,) = kueue_sites(rows_of(queues, own)).values()
    (below,) = kueue_sites(rows_of(queues, own, parent="top")).values()
    names = [f"q{number}" for number in range(len(queues))]
    assert [alone.share(name) for name in names] == [below.share(name) for name in names]
    # What it has can be borrowed through the cohort between, and lowers every share.
    top = {"what": "Cohort", "queue": "top", "quotas": dumps([["f", "gpu", more, None, None]])}
    blank: Row = {
        "cluster": "c",
        "parent": "",
        "weight_milli": 1000,
        "flavor": "",
        "resources": "",
        "number": 0,
    }
    (richer,) = kueue_sites([*rows_of(queues, own, parent="top"), {**blank, **top}]).values()
    (added,) = kueue_sites(rows_of(queues, own + more)).values()
    assert [richer.share(name) for name in names] == [added.share(name) for name in names]
