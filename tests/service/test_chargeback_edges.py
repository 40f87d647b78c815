"""Where a statement begins and ends: the billing zone's month, and what nobody had read yet."""

from dataclasses import replace
from decimal import Decimal

import msgspec

from domain.calendar import billing_zone
from domain.facts import Batch, Description, ObjectKind
from domain.money import CapacityType, Price, PriceBook
from domain.objects import Node
from domain.window import parse_instant
from service.held_time import UNREAD
from store.derived import Replacement
from tests.build import Books
from tests.service.test_chargeback import (
    AGREED,
    FIRST,
    caused,
    hold,
    hours,
    node,
    stored,
    told,
    with_causes,
)


def test_the_current_month_is_that_of_the_billing_zone() -> None:
    books = Books()
    node(books, FIRST, None)
    store = stored(books)
    agreed = replace(AGREED, zone=billing_zone("Europe/Berlin"), zone_name="Europe/Berlin")
    late = told(store, agreed=agreed, month="current", as_of_ms=parse_instant("2026-10-31T23:30:00Z"))
    store.close()
    assert (late["month"], late["start_at"]) == ("2026-11", "2026-10-31T23:00:00.000Z")


def test_what_stood_idle_before_anybody_read_the_nodes_is_unknown_and_not_billed() -> None:
    books = Books()
    node(books, hours(48), None)
    hold(books, "early", hours(-5), hours(60), micro_gpus=8_000_000)
    store = stored(books)
    seen = Description(
        uid="n1", kind=ObjectKind.NODE, namespace="", name="n1", from_ms=hours(-9000),
        observed_ms=hours(48), body=b'{"labels":{},"gpu_capacity":{},"gpu_allocatable":{},'
        b'"unschedulable":false,"ready":"True","taints":[]}',
    )  # fmt: skip
    store.append(Batch(cluster="north", descriptions=[seen]))
    statement = told(store, as_of_ms=hours(72))
    before = told(store, month="2026-08", as_of_ms=hours(72))
    assert (before["rows"], statement["nothing_because"]) == ([], None)
    assert before["nothing_because"] == (
        "nothing of 2026-08 was observed: clusters were first read at 2026-10-03T00:00:00.000Z; ask for that"
        " month or a later one"
    )
    gap = [each for each in statement["unknown"] if each["because"] == UNREAD]
    assert [(each["start_at"], each["end_at"]) for each in gap] == [
        ("2026-10-01T00:00:00.000Z", "2026-10-03T00:00:00.000Z")
    ]
    books_told = statement["books"]
    assert (books_told["held_gpu_hours"], books_told["idle_gpu_hours"]) == (8 * 60, 8 * 12)
    assert books_told["difference_gpu_hours"] == 0


def test_where_half_of_what_was_held_has_no_cause_yet_useful_is_a_lower_bound_and_its_price_an_upper() -> (
    None
):
    store = with_causes((FIRST, hours(6), "useful", None))
    half, whole = (told(store, as_of_ms=hours(until))["total"] for until in (12, 6))
    store.close()
    assert (half["useful_gpu_hours"], half["unattributed_gpu_hours"]) == (6, 6)
    assert (half["causes_lower_bound"], half["unit_cost_upper_bound"]) == (True, True)
    assert (whole["causes_lower_bound"], whole["unit_cost_upper_bound"]) == (False, False)


def test_a_piece_counts_for_whoever_its_workload_is_of_in_its_own_cluster() -> None:
    store, rows = stored(Books()), {}
    for cluster, team, cause in (("north", "red", "useful"), ("south", "blue", "idle")):
        books = Books(cluster=cluster)
        # The model of a workload is what it asked for, that of a piece where it ran.
        hold(books, "w", FIRST, hours(2), team=team, user_name=f"{team}-user", project=f"{team}-project",
             queue=f"{team}-queue", priority_class="batch")  # fmt: skip
        books.write(store)
        piece = caused("w", FIRST, hours(2), cause, cluster=cluster)
        store.replace(cluster, [Replacement(table="waste_piece", rows=[piece])])
    for row in told(store, as_of_ms=hours(2))["rows"]:
        names = ("kind", "cluster", "team", "project", "user", "queue", "gpu_model")
        figures = ("held", "useful", "idle", "unattributed")
        rows[tuple(row[name] for name in names)] = tuple(row[f"{name}_gpu_hours"] for name in figures)
    store.close()
    assert rows == {
        ("held", "north", "red", "red-project", "red-user", "red-queue", "A100"): (2, 2, 0, 0),
        ("held", "south", "blue", "blue-project", "blue-user", "blue-queue", "A100"): (2, 0, 2, 0),
    }


def test_a_node_that_was_spot_and_is_bought_on_demand_has_the_price_of_its_day() -> None:
    books = Books()
    node(books, FIRST, None, gpus=1)
    store = stored(books)
    store.append(Batch(cluster="north", descriptions=[
        Description(
            uid="n1", kind=ObjectKind.NODE, namespace="", name="n1", from_ms=from_ms, observed_ms=from_ms,
            body=msgspec.json.encode(Node(
                labels={"karpenter.sh/capacity-type": bought}, gpu_capacity={}, gpu_allocatable={},
                unschedulable=False, ready="True", taints=(),
            )),
        )
        for bought, from_ms in (("spot", FIRST), ("on-demand", hours(24)))
    ]))  # fmt: skip
    book = PriceBook((
        Price(listed=Decimal(3), valid_from_ms=0),
        Price(listed=Decimal(1), valid_from_ms=0, capacity_type=CapacityType.SPOT),
    ))  # fmt: skip
    rows = told(store, "day", agreed=replace(AGREED, book=book), as_of_ms=hours(48))["rows"]
    assert {row["day"]: row["list_cost"] for row in rows} == {"2026-10-01": 24, "2026-10-02": 72}
