"""The fairness error and Jain's index: values by hand, bounds, and reasons where there is none."""

import math

import pytest
from hypothesis import given

from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import entitlement
from analytics.fairness.index import (
    NO_CAPACITY,
    NOBODY_ENTITLED,
    NOBODY_HOLDS,
    Index,
    fairness_error,
    jains_index,
)
from tests.analytics.fairness.pools import pools


def pool(capacity: int, *held: int, demand: int = 9) -> Pool:
    entities = tuple(
        Entity(name=name, quota=0, demand=demand, held=part) for name, part in zip("abcd", held, strict=False)
    )
    return Pool(capacity=capacity, tree=CohortTree(entities=entities), hard_quota=False)


@given(pools())
def test_an_index_is_a_finite_ratio_or_has_a_reason(found: Pool) -> None:
    entitled = entitlement(found).entitled
    for index in (fairness_error(found, entitled), jains_index(found, entitled)):
        if index.value is None:
            assert index.undefined_because in {NO_CAPACITY, NOBODY_ENTITLED, NOBODY_HOLDS}
        else:
            assert math.isfinite(index.value)
            assert 0 <= index.value <= 1
            assert not index.undefined_because


@given(pools())
def test_jains_index_is_at_least_one_over_the_number_of_entities(found: Pool) -> None:
    index = jains_index(found, entitlement(found).entitled)
    assert index.value is None or index.value >= 1 / len(found.entities) - 1e-12


def test_everybody_has_what_they_should() -> None:
    fair = pool(8, 4, 4)
    assert fairness_error(fair, {"a": 4, "b": 4}) == Index(value=0.0)
    assert jains_index(fair, {"a": 4, "b": 4}) == Index(value=1.0)


def test_one_of_four_has_everything() -> None:
    # Three lack 2 of 8 GPUs each: 6 / 8. Jain: 16^2 / (4 * 16^2) with x = 4, 0, 0, 0.
    unfair, entitled = pool(8, 8, 0, 0, 0), dict.fromkeys("abcd", 2)
    assert fairness_error(unfair, entitled) == Index(value=0.75)
    assert jains_index(unfair, entitled) == Index(value=0.25)


def test_jains_index_of_one_two_three_and_four() -> None:
    # 10^2 / (4 * 30).
    index = jains_index(pool(40, 1, 2, 3, 4), dict.fromkeys("abcd", 10))
    assert index.value == pytest.approx(0.8333, abs=1e-4)


def test_who_asks_for_nothing_does_not_count() -> None:
    entities = (
        Entity(name="a", quota=0, demand=8, held=8),
        Entity(name="idle", quota=4, demand=0, held=0),
    )
    idle = Pool(capacity=8, tree=CohortTree(entities=entities), hard_quota=False)
    assert jains_index(idle, entitlement(idle).entitled) == Index(value=1.0)


def test_without_capacity_entitlement_or_holding_there_is_a_reason() -> None:
    reasons = (
        jains_index(pool(0, 0), {"a": 0}),
        fairness_error(pool(8, 0), {"a": 0}),
        jains_index(pool(8, 0), {"a": 8}),
    )
    assert [index.undefined_because for index in reasons] == [NO_CAPACITY, NOBODY_ENTITLED, NOBODY_HOLDS]
    assert all(index.value is None for index in reasons)
    assert fairness_error(pool(8, 0), {"a": 8}) == Index(value=1.0)
