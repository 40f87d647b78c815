"""Entitlement with several resources: bounds, one resource as the special case, the paper's example."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import entitlement
from analytics.fairness.several_resources import dominant_entitlement
from tests.analytics.fairness.pools import pools


def pool(capacity: int, **demands: int) -> Pool:
    entities = tuple(Entity(name=name, quota=0, demand=ask, held=0) for name, ask in demands.items())
    return Pool(capacity=capacity, tree=CohortTree(entities=entities), hard_quota=False)


@given(pools())
def test_with_one_resource_it_is_the_entitlement(found: Pool) -> None:
    lending = replace(found, tree=all_lent(found.tree))
    assert dominant_entitlement({"gpu": lending}, "gpu") == entitlement(lending).entitled


def all_lent(tree: CohortTree) -> CohortTree:
    """The same cohorts, without limits on what they lend to their parents."""
    return replace(tree, lending_limit=None, cohorts=tuple(map(all_lent, tree.cohorts)))


@given(pools(), pools(), st.sampled_from(["gpu", "cpu"]))
def test_nobody_gets_more_than_demand_and_limits_and_all_fit(gpu: Pool, cpu: Pool, asked: str) -> None:
    found = dominant_entitlement({"gpu": gpu, "cpu": cpu}, asked)
    of = {"gpu": gpu, "cpu": cpu}[asked]
    assert sum(found.values()) <= of.capacity
    assert all(0 <= found[entity.name] <= entity.most for entity in of.entities)


@given(pools())
def test_a_resource_that_does_not_exist_is_skipped(found: Pool) -> None:
    empty = replace(found, capacity=0)
    alone = dominant_entitlement({"gpu": found}, "gpu")
    assert dominant_entitlement({"gpu": found, "infiniband": empty}, "gpu") == alone
    assert set(dominant_entitlement({"gpu": found, "infiniband": empty}, "infiniband").values()) <= {0}


def test_the_papers_example_as_pools() -> None:
    # As in test_drf: tasks of <1 CPU, 4 GPU> and <3 CPU, 1 GPU> on 9 CPUs and 18 GPUs; 100 tasks each.
    asked = {"cpu": pool(9, a=100, b=300), "gpu": pool(18, a=400, b=100)}
    assert dominant_entitlement(asked, "gpu") == {"a": 12, "b": 2}


def test_who_lacks_cpu_is_not_owed_the_gpus_that_need_it() -> None:
    # By GPUs alone it would be 40 and 40. Of the 320 CPUs a would need 1,280, b none: while all of a
    # is 4 times the CPUs, all of b is the GPUs once. Both shares rise to 0.8; then no GPU is left.
    asked = {"gpu": pool(80, a=80, b=80), "cpu": pool(320, a=1280)}
    assert dominant_entitlement(asked, "gpu") == {"a": 16, "b": 64}


def test_a_limit_on_one_resource_limits_the_others_with_it() -> None:
    # a may use 4 of the 8 CPUs that its 8 GPUs need: half of both.
    cpu = pool(64, a=8)
    limited = replace(cpu.tree.entities[0], borrowing_limit=4)
    cpu = replace(cpu, tree=CohortTree(entities=(limited,)))
    assert dominant_entitlement({"gpu": pool(8, a=8), "cpu": cpu}, "gpu") == {"a": 4}


def test_a_cohorts_limit_on_one_resource_limits_the_others_with_it() -> None:
    # Cohort x may take 4 of the 8 CPUs that its 8 GPUs need: half of both.
    def below(limit: int | None) -> Pool:
        x = replace(pool(8, a=8).tree, name="x", borrowing_limit=limit)
        return Pool(capacity=8, tree=CohortTree(cohorts=(x,)), hard_quota=False)

    assert dominant_entitlement({"gpu": below(None), "cpu": below(4)}, "gpu") == {"a": 4}
