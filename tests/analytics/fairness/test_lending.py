"""Lent and borrowed: sums that must meet, and the words for what has no lender."""

from hypothesis import given

from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.lending import Standing, lending
from tests.analytics.fairness.pools import pools


def queue(name: str, quota: int, held: int, *, lending_limit: int | None = None) -> Entity:
    return Entity(name=name, quota=quota, held=held, demand=held, lending_limit=lending_limit)


def cohort(*queues: Entity) -> Pool:
    return Pool(capacity=16, tree=CohortTree(entities=queues), hard_quota=True)


@given(pools())
def test_lent_sums_to_borrowed_less_what_nobody_lends(pool: Pool) -> None:
    found = lending(pool)
    lent = sum(standing.lent for standing in found.standings.values())
    borrowed = sum(standing.borrowed for standing in found.standings.values())
    assert lent == borrowed - found.from_unassigned
    assert found.from_unassigned >= 0


@given(pools())
def test_nobody_lends_more_than_is_free_and_allowed(pool: Pool) -> None:
    standings = lending(pool).standings
    assert all(standings[entity.name].lent <= entity.lendable(entity.held) for entity in pool.entities)


@given(pools())
def test_what_is_held_is_quota_borrowed_or_over_quota(pool: Pool) -> None:
    standings = lending(pool).standings
    for entity in pool.entities:
        standing = standings[entity.name]
        above = standing.borrowed + standing.over_quota
        assert entity.held == entity.quota - standing.free_quota + above
        assert min(standing.borrowed, standing.over_quota) == 0 <= above


def test_lenders_share_what_is_borrowed_in_proportion_to_what_is_free() -> None:
    # b borrows 3. Of a's 6 free GPUs 3 may be lent, of c's 3 all: 1.5 each, the odd one by name.
    found = lending(cohort(queue("a", 8, 2, lending_limit=3), queue("b", 4, 7), queue("c", 4, 1)))
    assert [standing.lent for standing in found.standings.values()] == [2, 0, 1]
    assert found.standings["b"] == Standing(free_quota=0, lent=0, borrowed=3, over_quota=0)


def test_what_is_borrowed_beyond_all_lenders_is_from_unassigned() -> None:
    found = lending(cohort(queue("a", 4, 4), queue("b", 4, 9)))
    assert (found.standings["b"].borrowed, found.from_unassigned) == (5, 5)
