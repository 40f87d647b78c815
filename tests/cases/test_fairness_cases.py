"""
Cases drawn from public bug reports: weights, borrowing, quotas that are cut, unlimited, or on cohorts.

The adapters rename keys, parse quantities and convert units; the figures come from the product.
"""

import math
from collections.abc import Iterator

from analytics.fairness.books.layout import layouts
from analytics.fairness.books.site import Site
from analytics.fairness.debt import most_owed_first
from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import entitlement, spread, surplus
from analytics.fairness.kueue_shares import TERMS_AND_USES, kueue_sites
from analytics.fairness.lending import lending
from collector.wording import weight_milli
from domain.quantity import MICRO_PER_GPU
from domain.window import parse_instant
from service.histories import histories_of
from store.embedded import Store
from tests.cases.replay import (
    AFTER,
    CREATED,
    Json,
    case,
    check,
    queued_for,
    replay,
    truths,
    values,
    written,
)

GPU = MICRO_PER_GPU
PLENTY = 1000 * GPU  # "all queues want more than they get"


def gpus(parts: dict[str, int]) -> dict[str, float]:
    return {name: micro / GPU for name, micro in parts.items()}


def f01_pool(data: Json) -> Pool:
    entities = tuple(
        Entity(
            name=queue["name"], quota=queue["nominal"] * GPU, weight_milli=weight_milli(queue["weight"]),
            held=queue["allocated"] * GPU, demand=PLENTY,
        ) for queue in data["queues"]
    )  # fmt: skip
    capacity = data["surplus"] * GPU + sum(entity.quota for entity in entities)
    return Pool(capacity=capacity, tree=CohortTree(entities=entities), hard_quota=False)


def test_f01_zero_and_missing_weights() -> None:
    given, expected = case("F01-zero-and-missing-weights")
    pool = f01_pool(given["data"])
    desired = entitlement(pool).entitled
    debt = gpus({entity.name: desired[entity.name] - entity.held for entity in pool.entities})
    answer = {
        "desired": gpus(dict(desired)),
        "debt": debt,
        "order_most_owed_first": most_owed_first(debt),
        "all_finite": all(map(math.isfinite, debt.values())),
    }
    assert answer == expected


def f02_objects(queue: Json) -> Iterator[Json]:
    """A ClusterQueue, and the one Workload that has reserved all that it uses, as Kueue writes them."""
    named = {_F02_NAMES[name]: terms for name, terms in queue["res"].items()}
    resources = [
        {"name": name, "nominalQuota": str(terms["nominal"])}
        | ({"lendingLimit": str(terms["lendingLimit"])} if "lendingLimit" in terms else {})
        for name, terms in named.items()
    ]
    spec = {
        "resourceGroups": [
            {"coveredResources": [*named], "flavors": [{"name": "f", "resources": resources}]}
        ],
        "fairSharing": {"weight": str(queue["weight"])},
    }
    yield written(
        "ClusterQueue", queue["name"], spec=spec | ({"cohort": queue["cohort"]} if queue["cohort"] else {})
    )
    usage = {name: str(terms["usage"]) for name, terms in named.items()}
    assignment = {"name": "main", "count": 1, "flavors": dict.fromkeys(named, "f"), "resourceUsage": usage}
    admission = {"clusterQueue": queue["name"], "podSetAssignments": [assignment]}
    yield written(
        "Workload",
        f"uses-{queue['name']}",
        spec=queued_for(usage["nvidia.com/gpu"]),
        status={"admission": admission, "conditions": truths({"QuotaReserved": "True"}, CREATED)},
    )


_F02_NAMES = {"gpu": "nvidia.com/gpu", "cpu": "cpu"}


def test_f02_the_share_is_what_is_borrowed_of_what_can_be_lent() -> None:
    given, expected = case("F02-borrowing-share")
    queues = given["data"]["queues"]
    store = replay(("ADDED", one, CREATED) for queue in queues for one in f02_objects(queue))
    shares = values(store, "kueue_weighted_share_permille", AFTER, "queue")
    rows = store.rows(TERMS_AND_USES, {"as_of_ms": parse_instant(AFTER)})
    (site,) = kueue_sites(rows).values()
    borrowing = {
        queue["name"]: {name: site.borrowed(queue["name"])[_F02_NAMES[name]] / 1000 for name in queue["res"]}
        for queue in queues
    }
    rounded = {name: share if share is None else round(share, 4) for name, share in shares.items()}
    assert {"borrowed": borrowing, "weighted_share": rounded} == expected


def test_f03_a_quota_cut_below_what_is_used() -> None:
    given, expected = case("F03-quota-cut-below-usage")
    queue = given["data"]["queue"]
    entity = Entity(
        name=queue["name"], quota=queue["nominal_now"] * GPU, held=queue["usage"] * GPU,
        demand=(queue["usage"] + given["data"]["next_job_gpus"]) * GPU, alone=queue["cohort"] is None,
    )  # fmt: skip
    pool = Pool(capacity=PLENTY, tree=CohortTree(entities=(entity,)), hard_quota=True)
    standing = lending(pool).standings["red"]
    answer = {name: getattr(standing, name) / GPU for name in ("free_quota", "borrowed", "over_quota")}
    del expected["why_next_job_waits"]  # see test_why_cases
    check(answer, expected)


def f05_written(queue: Json) -> Json:
    """The queue as its scheduler's API writes it."""
    if queue["kind"] == "volcano":
        spec: Json = {"capability": queue["capability"]}
        return written("Queue", queue["id"], apiVersion="scheduling.volcano.sh/v1beta1", spec=spec)
    if queue["kind"] == "kai":
        spec = {"resources": {"gpu": queue["gpu"]}}
        return written("Queue", queue["id"], apiVersion="scheduling.run.ai/v2", spec=spec)
    limits = {"name": "nvidia.com/gpu", **queue}
    flavors = [{"name": "default", "resources": [limits]}]
    return written("ClusterQueue", queue["id"], spec={"resourceGroups": [{"flavors": flavors}]})


def f05_offered() -> list[Json]:
    """A node with GPUs, and the flavor of the ClusterQueues."""
    gpus = {"nvidia.com/gpu": "8"}
    labels = {"nvidia.com/gpu.product": "A100"}
    status = {"capacity": gpus, "allocatable": gpus}
    node = written("Node", "n", metadata={"labels": labels}, status=status)
    return [node, written("ResourceFlavor", "default", spec={"nodeLabels": labels})]


def f05_entities(store: Store) -> dict[str, Entity]:
    """The holders of quota, as the ledger lays them out."""
    uids = {str(row["uid"]) for row in store.rows("select uid from object_state", {})}
    site = Site.of("c", histories_of(*store.facts_of("c", uids)).values())
    pools = layouts(site, site.versions[-1], parse_instant(CREATED) + 1)
    return {entity.name: entity for pool in pools.values() for entity in pool.tree.members()}


def f05_limit(entity: Entity) -> int | str:
    """GPUs that it may hold at most."""
    if entity.borrowing_limit is None:
        return "unlimited"
    return (entity.quota + entity.borrowing_limit) // GPU


def test_f05_what_no_limit_means_to_each_scheduler() -> None:
    given, expected = case("F05-unlimited-quota")
    # YuniKorn's queues are lines of its configuration, not objects: no cluster tells of them.
    queues = [queue for queue in given["data"]["queues"] if queue["kind"] != "yunikorn"]
    objects = (*f05_offered(), *map(f05_written, queues))
    entities = f05_entities(replay(("ADDED", one, CREATED) for one in objects))
    limits = {queue["id"]: f05_limit(entities[queue["id"]]) for queue in queues}
    assert limits == {name: limit for name, limit in expected["limit"].items() if name not in ("y1", "y2")}


def f06_tree(node: Json) -> CohortTree:
    """Names without children are queues."""
    children, rest = node["children"], {"weight_milli": weight_milli(node.get("weight"))}
    queues = tuple(
        Entity(
            name=child["name"], quota=child["quota"] * GPU, weight_milli=weight_milli(child["weight"]),
            demand=PLENTY, held=0,
        ) for child in children if "children" not in child
    )  # fmt: skip
    below = tuple(f06_tree(child) for child in children if "children" in child)
    return CohortTree(name=node["name"], quota=node["quota"] * GPU, entities=queues, cohorts=below, **rest)


def test_f06_a_weight_competes_only_with_its_siblings() -> None:
    given, expected = case("F06-cohort-tree-weights")
    tree = f06_tree(given["data"]["tree"])
    pool = Pool(capacity=tree.total_quota, tree=tree, hard_quota=True)
    # Whose use it is the case leaves open; q3 has quota for it.
    guaranteed = {"q1": 0, "q2": 0, "q3": given["data"]["guaranteed_use"] * GPU}
    room = dict.fromkeys(guaranteed, PLENTY)
    amount = surplus(pool, guaranteed=guaranteed, room=room)
    more = gpus(spread(tree, amount, guaranteed=guaranteed, room=room))
    check({"total_quota": tree.total_quota / GPU, "surplus": amount / GPU, "desired_surplus": more}, expected)
