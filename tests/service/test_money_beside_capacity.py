"""Preempted work that is credited, fixed costs and budgets of money, through the store."""

from dataclasses import replace
from decimal import Decimal

import msgspec

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.extras import BorneBy, Preempted, SharedCost
from domain.facts import Batch, Description, ObjectKind, SourceMark
from domain.money import Price, PriceBook
from domain.objects import Node
from domain.policy import Policy
from domain.quantity import MICRO_PER_GPU
from service.node_prices import NodePrices
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books
from tests.service.closing_world import closed, look
from tests.service.test_chargeback import AGREED, END, FIRST, caused, hold, hours, node, stored, told

CREDITED = replace(AGREED, preempted=Preempted.CREDITED, preempted_borne_by=BorneBy.PREEMPTOR)


def preempted() -> Store:
    """Ash held a GPU from 20:00 and was preempted by oak at 02:00 of the next day; three hours are lost."""
    books = Books()
    node(books, FIRST, hours(48), gpus=2)
    hold(books, "a", hours(20), hours(26), team="ash", user_name="ada")
    hold(books, "o", hours(26), hours(30), team="oak")
    books.add("member", workload_uid="o", object_uid="o-object", kind="Workload")
    books.add(
        "eviction", workload_uid="a", at_ms=hours(26), preempted=True, reason="Preempted", mechanism="kueue",
        preemptor_uid="o-object", attempt=1, missed=0, detail="",
    )  # fmt: skip
    store = stored(books)
    pieces = [
        caused("a", hours(20), hours(23), "useful"),
        caused("a", hours(23), hours(26), "preempted_lost", hours(26)),
        caused("o", hours(26), hours(30), "useful"),
    ]  # fmt: skip
    store.replace("north", [Replacement(table="waste_piece", rows=pieces)])
    return store


def amounts(store: Store, agreed: Agreement, *by: str) -> dict[tuple[str, ...], Decimal]:
    rows = told(store, *by, agreed=agreed)["rows"]
    return {tuple(row[name] for name in by): row["billed_cost"] for row in rows}


def test_preempted_work_is_paid_or_credited_as_was_agreed() -> None:
    store = preempted()
    charged = amounts(store, AGREED, "kind", "team")
    credited = amounts(store, CREDITED, "kind", "team")
    assert ("preemption_credit", "ash") not in charged
    # Three hours at 1.99, on the day on which they were lost; oak took the place.
    assert credited["preemption_credit", "ash"] == Decimal("-5.97")
    assert credited["preemption_charge", "oak"] == Decimal("5.97")
    assert amounts(store, CREDITED, "kind", "day")["preemption_credit", "2026-10-02"] == Decimal("-5.97")
    assert credited["held", "ash"] == charged["held", "ash"]
    totals = [told(store, agreed=agreed)["total"] for agreed in (AGREED, CREDITED)]
    assert [each["gpu_hours"] for each in totals] == [96, 96]
    # A close is of the terms of its day: what is agreed on later credits nothing of it.
    first = closed(store, "2026-10", 31 * 24 + 5, CREDITED)
    assert {each.name: each.holds for each in first.checks}["billed_cost"]
    assert look(store, 31 * 24 + 9) == []
    assert told(store, "kind", month="2026-11", as_of_ms=END + 86_400_000)["corrections"] == []
    store.close()


def test_a_fixed_cost_of_a_month_that_runs_is_as_much_as_of_it_has_passed() -> None:
    store = preempted()
    agreed = replace(AGREED, shared_costs=(SharedCost(name="net", monthly=Decimal(310)),))
    rows = told(store, "kind", "team", "project", agreed=agreed, as_of_ms=hours(48))["rows"]
    shared = {row["team"]: row["billed_cost"] for row in rows if row["project"] == "net"}
    # Ten a day: the first is ash's, of the second ash held two of six hours.
    assert shared == {"ash": Decimal("13.33"), "oak": Decimal("6.67")}
    store.close()


def test_nodes_are_priced_for_budgets_by_pool_and_profile_and_anew_where_that_changes() -> None:
    books = Books()
    node(books, FIRST, None, gpus=1)
    node(books, FIRST, None, gpus=1, node="n2")
    store = stored(books)
    described = [
        ("n1", Node(labels={"cloud.google.com/gke-nodepool": "big"}, gpu_capacity={}, gpu_allocatable={},
                    unschedulable=False, ready="True", taints=())),
        ("n2", Node(labels={}, gpu_capacity={"nvidia.com/mig-1g.5gb": 7 * MICRO_PER_GPU}, gpu_allocatable={},
                    unschedulable=False, ready="True", taints=())),
    ]  # fmt: skip
    mark = SourceMark(kind=ObjectKind.NODE, resource_version="1", epoch=0, seen_ms=0)
    store.append(Batch(cluster="north", marks={ObjectKind.NODE: mark}, descriptions=[
        Description(uid=name, kind=ObjectKind.NODE, namespace="", name=name, from_ms=0, observed_ms=0,
                    body=msgspec.json.encode(body)) for name, body in described
    ]))  # fmt: skip
    book = PriceBook((
        Price(listed=Decimal(3), pool="big", valid_from_ms=0),
        Price(listed=Decimal(4), pool="big", valid_from_ms=hours(48)),
        Price(listed=Decimal("0.5"), mig_profile="1g.5gb", valid_from_ms=0),
    ))  # fmt: skip
    stage = NodePrices(store, Policy(money_budgets={"ash": {"day": 1.0}}), replace(AGREED, book=book))
    assert (stage.refresh("north", hours(72)), stage.refresh("north", hours(73))) == (1, 0)
    rows = store.rows("select node, start_ms, end_ms, nano_price from node_price order by node, start_ms")
    assert [tuple(row.values()) for row in rows] == [
        ("n1", FIRST, hours(48), 3 * 10**9),
        ("n1", hours(48), None, 4 * 10**9),
        ("n2", FIRST, None, 5 * 10**8),
    ]
    store.close()
