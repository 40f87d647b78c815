"""Queues of KAI, ElasticQuotas and claimed devices in the books of fairness."""

from typing import Any

from domain.policy import Policy
from service.fairness import Fairness
from store.embedded import Store
from tests.cases.replay import Json
from tests.service.test_kinds import claim as claimed
from tests.service.test_kinds import lives, made, own_claim, pod
from tests.service.test_site_of_kinds import ms, node, resource_slice

GPU = 1_000_000


def kai_queue(name: str, *, parent: str = "", **gpu: float) -> Json:
    above = {"parentQueue": parent} if parent else {}
    return made("scheduling.run.ai/v2", "Queue", name, 0, spec={"resources": {"gpu": gpu}, **above})


def in_queue(name: str, queue: str, gpus: int, *, bound: int | None) -> Json:
    """A pod of KAI's, in a queue by its label."""
    labels = {"labels": {"kai.scheduler/queue": queue}}
    return pod(name, 1, bound=bound, gpus=gpus, metadata=labels, spec={"schedulerName": "kai-scheduler"})


def shares(store: Store) -> dict[str, dict[str, Any]]:
    """The last stretch of each entity in the only pool, in GPUs."""
    Fairness(store, Policy()).refresh("c", ms(59))
    rows = store.rows(
        "select * from share_span where start_ms <= $at_ms order by start_ms", {"at_ms": ms(30)}
    )
    names = ("quota", "demand", "held", "entitled")
    return {str(row["entity"]): {name: int(str(row[name])) / GPU for name in names} for row in rows}


def test_queues_of_kai_are_entitled_to_their_quota_and_share_the_rest_by_weight_up_to_their_limit() -> None:
    found = shares(
        lives(
            node("n1", gpus=16),
            kai_queue("department", quota=8, limit=-1, overQuotaWeight=1),
            kai_queue("a", parent="department", quota=2, limit=4, overQuotaWeight=1),
            kai_queue("b", parent="department", quota=4, limit=-1, overQuotaWeight=3),
            kai_queue("c", quota=2, limit=-1, overQuotaWeight=1),
            in_queue("holds", "a", 8, bound=2),
            in_queue("waits-b", "b", 12, bound=None),
            in_queue("waits-c", "c", 1, bound=None),
        )
    )
    # Guaranteed 2, 4 and 1. Of the 9 left a may have 2 up to its limit, and b the 7 others.
    assert found == {
        "a": {"quota": 2, "demand": 8, "held": 8, "entitled": 4},
        "b": {"quota": 4, "demand": 12, "held": 0, "entitled": 11},
        "c": {"quota": 2, "demand": 1, "held": 0, "entitled": 1},
    }


def test_an_unlimited_quota_of_kai_is_all_that_there_is() -> None:
    found = shares(
        lives(
            node("n1", gpus=8),
            kai_queue("a", quota=-1, limit=-1),
            kai_queue("b", quota=0, limit=3),
            in_queue("holds", "b", 3, bound=2),
            in_queue("waits", "a", 8, bound=None),
        )
    )
    assert found["a"] == {"quota": 8, "demand": 8, "held": 0, "entitled": 8}
    assert found["b"] == {"quota": 0, "demand": 3, "held": 3, "entitled": 0}


def test_a_namespace_with_an_elastic_quota_is_promised_its_least() -> None:
    quota = made(
        "scheduling.x-k8s.io/v1alpha1",
        "ElasticQuota",
        "q",
        0,
        spec={"min": {"nvidia.com/gpu": "2"}, "max": {"nvidia.com/gpu": "5"}},
    )
    lender = made("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "other", 0, metadata={"namespace": "u"},
                  spec={"min": {"nvidia.com/gpu": "6"}, "max": {"nvidia.com/gpu": "8"}})  # fmt: skip
    alone = shares(lives(node("n1", gpus=8), quota, pod("p", 1, bound=2)))
    assert alone["namespace/t"] == {"quota": 2, "demand": 8, "held": 8, "entitled": 2}
    # What the other namespace does not use may be borrowed, up to the most of the own quota.
    found = shares(lives(node("n1", gpus=8), quota, lender, pod("p", 1, bound=2)))
    assert found["namespace/t"] == {"quota": 2, "demand": 8, "held": 8, "entitled": 5}


def test_claimed_devices_are_demand_held_and_capacity_of_a_pool() -> None:
    store = lives(
        node("n1"),
        resource_slice("s", "n1", 0, 4),
        claimed("c1", pod_uid="p"),
        pod("p", 1, bound=2, gpus=0, **own_claim("c1")),
    )
    assert shares(store) == {"team/t": {"quota": 0, "demand": 1, "held": 1, "entitled": 1}}
    sql = "select capacity from pool_span where start_ms <= $at_ms order by start_ms"
    pools = store.rows(sql, {"at_ms": ms(30)})
    assert pools[-1]["capacity"] == 4 * GPU
