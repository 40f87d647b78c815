"""Who is behind whom is found at each look, and told to those who ask soon after; else it is found anew."""

from typing import Any

from benchmarks.waiting_city import city
from benchmarks.waiting_store import AS_OF_MS, CLUSTER, kept
from domain.policy import Policy
from service import why
from service.wait_reasons import Reasons
from service.why_orders import Orders

SOON, LATE = AS_OF_MS + 30_000, AS_OF_MS + 121_000


def test_an_order_of_the_last_look_is_the_one_that_is_found_anew() -> None:
    site = city(nodes=100, waiting=150)
    store, orders = kept(site), Orders()
    assert Reasons(store, orders=orders).refresh(CLUSTER, AS_OF_MS) == 150
    assert orders.of(CLUSTER, AS_OF_MS - 1) is None
    assert orders.of(CLUSTER, LATE) is None
    order = orders.of(CLUSTER, SOON)
    assert order is not None
    behind = [uid for uid, found in order.behind.items() if "strict_head" not in found.evidence]
    others = [one.uid for one, _ in site.waiting if one.uid not in order.behind]
    for uids, ages in ((behind[:3], {30}), (others[:3], set())):
        for uid in uids:
            looked, anew = (
                _findings(why.document(store, uid, SOON, Policy(), told)) for told in (orders, None)
            )
            told = {one["evidence"].pop("order_seconds_ago", None) for one in looked}
            assert told - {None} == ages
            assert looked == anew
    store.close()


def _findings(found: dict[str, Any] | None) -> list[dict[str, Any]]:
    assert found is not None
    return [found["primary"], *found["further"]]
