"""What would be refused, by a scheduler's webhook or by us: no patch or one that is taken, and why."""

import json
from typing import Any

import pytest

from domain.errors import UsageError
from domain.window import MS_PER_HOUR, FixedClock
from service.quota_documents import detail, listing
from service.quota_orders import PROPOSE, QuotaOrders
from service.quota_settings import QuotaSettings
from service.quota_site import pools
from tests.cases.replay import Feed
from tests.json_patch import applied
from tests.quota_site import CREATED, END, POOL, SEEN, Week, queue, site, written

NOW = END + MS_PER_HOUR
Json = dict[str, Any]


def proposal(week: Week, holder: str) -> Json:
    [row] = [one for one in listing(week.store, week.terms, NOW).rows if one["holder"] == holder]
    found = detail(week.store, week.terms, row["id"], NOW)
    assert found is not None
    return dict(found)


def limits(read: Json) -> Json:
    """The entry of GPUs in the flavor that counts."""
    entry: Json = read["spec"]["resourceGroups"][1]["flavors"][1]["resources"][1]
    return entry


@pytest.mark.parametrize(("lends", "left"), [("40", "36"), (38, 36), ("36", "36"), ("12", "12")])
def test_a_cut_takes_a_lending_limit_along_that_kueue_would_refuse(lends: object, left: object) -> None:
    week = site()
    red = queue("red", "40", "101")
    limits(red)["lendingLimit"] = lends
    week.see(red, SEEN + 1)
    week.proposer.refresh("c", NOW)
    found = proposal(week, "red")
    after = applied(found["patch"], red)
    assert limits(after) == {"name": "nvidia.com/gpu", "nominalQuota": "36", "lendingLimit": left}
    assert applied(found["inverse"], after) == red


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"deserved": 40, "guarantee": 38}, "no fewer GPUs than its guarantee of 38: lower that first"),
        ({"deserved": 40, "guarantee": 36}, ""),
        ({"deserved": 40, "capability": 30}, "no more GPUs than its capability of 30: raise that first"),
        ({"capability": 40, "guarantee": 40}, "no fewer GPUs than its guarantee of 40: lower that first"),
    ],
)
def test_a_queue_of_volcano_has_no_patch_that_its_webhook_refuses(spec: dict[str, int], why: str) -> None:
    """Red is a queue of Volcano here, with as much as the ClusterQueue of that name."""
    week = site()
    week.proposer.refresh("c", NOW)
    gpus = {name: {"nvidia.com/gpu": str(amount)} for name, amount in spec.items()}
    if "guarantee" in gpus:
        gpus["guarantee"] = {"resource": gpus["guarantee"]}  # type: ignore[dict-item]
    red = written("Queue", "red", "7", {"weight": 1, **gpus}) | {
        "apiVersion": "scheduling.volcano.sh/v1beta1"
    }
    week.see(red, SEEN + 1)
    [plain] = [one for one in pools(week.store, "c", NOW) if not one.flavor]
    with week.store.transaction() as connection:
        connection.execute(
            "update proposal set pool = $pool, flavor = '', object_uid = 'Queue-red' where holder = 'red'",
            {"pool": plain.pool},
        )
    found = proposal(week, "red")
    assert found["no_patch_because"] == (f"Volcano grants it {why}" if why else "")
    assert (found["patch"] is None) == bool(why)


def test_a_quota_of_some_pods_of_a_namespace_is_not_the_namespaces() -> None:
    feed = Feed()
    for name, gpus, spec in (("all", 8, {}), ("urgent", 2, {"scopes": ["PriorityClass"]})):
        head = {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": CREATED}
        hard = {"requests.nvidia.com/gpu": gpus}
        read = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": head, "spec": {"hard": hard, **spec}}
        feed.see("ADDED", read, SEEN)
    [pool] = pools(feed.settled(), "c", NOW)
    assert {name: held.gpus for name, held in pool.holders.items()} == {"namespace/ml": 8}


def ordered(week: Week, clusters: list[str]) -> str:
    orders = QuotaOrders(
        store=week.store, policy=week.policy, agreement=week.proposer.agreement, terms=week.terms,
        clock=FixedClock(NOW),
    )  # fmt: skip
    return orders.handlers()[PROPOSE](json.dumps({"week": None, "clusters": clusters}))


def test_a_cluster_that_is_not_there_is_refused_and_one_proposal_is_one() -> None:
    week = site()
    with pytest.raises(UsageError, match="cluster 'nope': there is none in this store; known are c"):
        ordered(week, ["nope"])
    # Red has 4 less than was agreed, and nobody is owed or to be cut.
    week = site(red_lost=0.0, blue_debt=0.0, terms=QuotaSettings(agreed={POOL: {"red": 44}}))
    assert "week 2026-W10: 1 proposal q-" in ordered(week, ["c"])


def test_what_the_settings_agree_with_nobody_is_told() -> None:
    terms = QuotaSettings(agreed={POOL: {"rde": 40, "red": 40}, "main/a1000": {"red": 1}}, units={"m": 8})
    told = ordered(site(terms=terms), []).splitlines()
    assert told[0].startswith("c, week 2026-W10: 2 proposals")
    assert told[1:] == [
        "settings, quota.agreed: there is no pool main/a1000; the pools are main/a100, main/l40s",
        "settings, quota.units: there is no pool m; the pools are main/a100, main/l40s",
        "settings, quota.agreed: pool main/a100 has no holder rde; those are blue, red",
    ]
