"""Entitlements: hand cases, and laws over pools of every shape."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import entitlement, spread
from analytics.fairness.maxmin import Claim, max_min
from domain.errors import DataError
from tests.analytics.fairness.pools import GPU, pools

NO_LIMITS = st.none()


def queue(name: str, quota: int, demand: int, **rest: int | bool | None) -> Entity:
    return Entity(name=name, quota=quota, demand=demand, held=0, **rest)  # type: ignore[arg-type]


def flat(capacity: int, *queues: Entity, quota: int = 0, hard_quota: bool = True) -> Pool:
    return Pool(capacity=capacity, tree=CohortTree(entities=queues, quota=quota), hard_quota=hard_quota)


def entitled(pool: Pool) -> dict[str, int]:
    return dict(entitlement(pool).entitled)


@given(pools(NO_LIMITS))
def test_without_limits_entitlements_sum_to_capacity_or_demand(pool: Pool) -> None:
    pool = replace(pool, hard_quota=False)
    demand = sum(entity.demand for entity in pool.entities)
    assert sum(entitled(pool).values()) == min(pool.capacity, demand)


@given(pools())
def test_entitlements_never_exceed_capacity_demand_or_a_limit(pool: Pool) -> None:
    found = entitled(pool)
    assert sum(found.values()) <= pool.capacity
    assert all(0 <= found[entity.name] <= entity.most for entity in pool.entities)


@given(pools())
def test_a_cohort_borrows_and_lends_no_more_than_its_limits(pool: Pool) -> None:
    found = entitled(pool)
    total = sum(found.values())
    for cohort in pool.tree.cohorts:
        inside = sum(found[entity.name] for entity in cohort.members())
        if cohort.borrowing_limit is not None:
            assert inside <= cohort.total_quota + cohort.borrowing_limit
        if cohort.lending_limit is not None and pool.hard_quota:
            others = pool.tree.total_quota - cohort.total_quota
            assert total - inside <= others + cohort.lending_limit


@given(pools())
def test_the_guaranteed_part_comes_first(pool: Pool) -> None:
    found = entitlement(pool)
    promised = {entity.name: min(entity.quota, entity.demand) for entity in pool.entities}
    if sum(promised.values()) <= pool.capacity:
        assert found.guaranteed == promised
    else:
        assert (sum(found.guaranteed.values()), found.surplus) == (pool.capacity, 0)
    assert all(found.entitled[name] >= part for name, part in found.guaranteed.items())


@given(pools(NO_LIMITS))
def test_entitlements_are_the_guaranteed_parts_and_the_surplus_that_is_wanted(pool: Pool) -> None:
    found = entitlement(pool)
    guaranteed = sum(found.guaranteed.values())
    unmet = sum(entity.demand for entity in pool.entities) - guaranteed
    assert sum(found.entitled.values()) == guaranteed + min(found.surplus, unmet)


@given(pools(), st.randoms(use_true_random=False))
def test_the_order_of_entities_and_cohorts_never_matters(pool: Pool, random: Random) -> None:
    def shuffled(tree: CohortTree) -> CohortTree:
        entities = random.sample(tree.entities, len(tree.entities))
        cohorts = random.sample(tree.cohorts, len(tree.cohorts))
        return replace(tree, entities=tuple(entities), cohorts=tuple(map(shuffled, cohorts)))

    assert entitlement(replace(pool, tree=shuffled(pool.tree))) == entitlement(pool)


@given(pools(), st.integers(2, 9))
def test_entitlements_scale_with_everything_else(pool: Pool, times: int) -> None:
    # Rounding is at most a unit at each of four levels, and at the guaranteed part.
    larger = entitled(_scaled(pool, times))
    assert all(abs(larger[name] - times * part) <= 5 * times for name, part in entitled(pool).items())


def _scaled(pool: Pool, times: int) -> Pool:
    def grown(amount: int | None) -> int | None:
        return None if amount is None else amount * times

    def tree_of(tree: CohortTree) -> CohortTree:
        entities = tuple(
            replace(
                entity,
                quota=entity.quota * times,
                demand=entity.demand * times,
                borrowing_limit=grown(entity.borrowing_limit),
                lending_limit=grown(entity.lending_limit),
            )
            for entity in tree.entities
        )
        below = tuple(map(tree_of, tree.cohorts))
        return replace(
            tree,
            quota=tree.quota * times,
            borrowing_limit=grown(tree.borrowing_limit),
            lending_limit=grown(tree.lending_limit),
            entities=entities,
            cohorts=below,
        )

    return replace(pool, capacity=pool.capacity * times, tree=tree_of(pool.tree))


@given(pools(NO_LIMITS))
def test_among_siblings_weight_zero_comes_last(pool: Pool) -> None:
    found = entitlement(pool)
    siblings = pool.tree.entities
    if any(
        found.entitled[entity.name] > found.guaranteed[entity.name]
        for entity in siblings
        if entity.weight_milli == 0
    ):
        weighty = [entity for entity in siblings if entity.weight_milli > 0]
        assert all(found.entitled[entity.name] == entity.demand for entity in weighty)


@given(pools(NO_LIMITS))
def test_an_unchanged_weight_of_all_siblings_is_no_weight_at_all(pool: Pool) -> None:
    def heavier(tree: CohortTree) -> CohortTree:
        entities = tuple(replace(entity, weight_milli=7 * entity.weight_milli) for entity in tree.entities)
        cohorts = tuple(
            replace(heavier(cohort), weight_milli=7 * cohort.weight_milli) for cohort in tree.cohorts
        )
        return replace(tree, entities=entities, cohorts=cohorts)

    assert entitled(replace(pool, tree=heavier(pool.tree))) == entitled(pool)


def test_unused_quota_is_shared_by_weight() -> None:
    # a uses 2 of 8 and lends 6; b and c stand at their quota of 4 and share 6 as 2 : 1.
    pool = flat(16, queue("a", 8, 2), queue("b", 4, 20, weight_milli=2000), queue("c", 4, 20))
    assert entitled(pool) == {"a": 2, "b": 8, "c": 6}


def test_a_lending_limit_keeps_quota_back() -> None:
    pool = flat(12, queue("a", 8, 2, lending_limit=1), queue("b", 4, 20))
    assert entitled(pool) == {"a": 2, "b": 5}


def test_a_borrowing_limit_of_zero_is_none_and_a_missing_one_no_limit() -> None:
    lender = queue("a", 8, 0)
    assert entitled(flat(12, lender, queue("b", 4, 20, borrowing_limit=0))) == {"a": 0, "b": 4}
    assert entitled(flat(12, lender, queue("b", 4, 20))) == {"a": 0, "b": 12}


def test_the_cohorts_own_quota_adds_to_its_members() -> None:
    assert entitled(flat(10, queue("a", 4, 9), queue("b", 2, 9), quota=4)) == {"a": 6, "b": 4}


def test_capacity_in_no_quota_is_handed_out_or_found() -> None:
    queues = (queue("a", 4, 9), queue("b", 2, 9))
    soft, hard = (entitlement(flat(10, *queues, hard_quota=hard)) for hard in (False, True))
    assert (soft.entitled, soft.handed_out, soft.without_quota) == ({"a": 6, "b": 4}, 4, 0)
    assert (hard.entitled, hard.handed_out, hard.without_quota) == ({"a": 4, "b": 2}, 0, 4)


def test_where_quotas_exceed_capacity_they_are_cut_in_proportion() -> None:
    # 6 GPUs for quotas of 8 and 4.
    found = entitled(flat(6 * GPU, queue("a", 8 * GPU, 8 * GPU), queue("b", 4 * GPU, 4 * GPU)))
    assert found == {"a": 4 * GPU, "b": 2 * GPU}


def test_teams_without_quota_share_equally_and_one_gpu_in_three_exactly() -> None:
    teams = [queue(name, 0, 8 * GPU) for name in ("a", "b", "c")]
    found = entitled(flat(GPU, *teams, hard_quota=False))
    assert found == {"a": 333_334, "b": 333_333, "c": 333_333}


def test_a_queue_without_a_cohort_keeps_to_its_quota() -> None:
    pool = flat(12, queue("a", 4, 9, alone=True), queue("b", 4, 9), hard_quota=False)
    assert entitled(pool) == {"a": 4, "b": 8}


def test_quota_that_a_cohort_does_not_lend_is_for_its_own_members_first() -> None:
    # Cohort x has 8 unused and lends 2. Of its 8, 6 are its own; the 2 are shared 1 : 1 with b.
    x = CohortTree(name="x", lending_limit=2, entities=(queue("p", 8, 0), queue("q", 0, 20)))
    tree = CohortTree(entities=(queue("b", 0, 20),), cohorts=(x,))
    assert entitled(Pool(capacity=8, tree=tree, hard_quota=True)) == {"b": 1, "p": 0, "q": 7}


def test_a_cohorts_borrowing_limit_binds_its_members_together() -> None:
    x = CohortTree(name="x", borrowing_limit=1, entities=(queue("p", 2, 9), queue("q", 2, 9)))
    tree = CohortTree(quota=8, entities=(queue("b", 0, 20),), cohorts=(x,))
    assert entitled(Pool(capacity=12, tree=tree, hard_quota=True)) == {"b": 7, "p": 3, "q": 2}


def test_spreading_without_a_tree_is_one_weighted_max_min() -> None:
    queues = (queue("a", 0, 0, weight_milli=2000), queue("b", 0, 0))
    shares = spread(CohortTree(entities=queues), 9, guaranteed={}, room={"a": 9, "b": 2})
    assert list(shares.values()) == max_min(9, [Claim(9, 2000), Claim(2, 1000)]) == [7, 2]


def test_a_negative_number_a_name_twice_and_a_limit_at_the_root_are_refused() -> None:
    with pytest.raises(DataError, match=r"entity 'a', quota = -1: expected at least 0"):
        queue("a", -1, 0)
    with pytest.raises(DataError, match=r"entities \['a'\]: expected each name once"):
        flat(1, queue("a", 0, 0), queue("a", 0, 0))
    with pytest.raises(DataError, match="root cohort without limits"):
        Pool(capacity=1, tree=CohortTree(lending_limit=1), hard_quota=True)
