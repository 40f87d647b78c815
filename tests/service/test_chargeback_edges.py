"""Where a statement begins and ends: the billing zone's month, and what nobody had read yet."""

from dataclasses import replace

from domain.calendar import billing_zone
from domain.facts import Batch, Description, ObjectKind
from domain.window import parse_instant
from service.held_time import UNREAD
from tests.build import Books
from tests.service.test_chargeback import AGREED, FIRST, hold, hours, node, stored, told


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
        "nothing was held in 2026-08 and no node with GPUs is known then; clusters were first read at"
        " 2026-10-03T00:00:00.000Z: ask for that month or a later one"
    )
    gap = [each for each in statement["unknown"] if each["because"] == UNREAD]
    assert [(each["start_at"], each["end_at"]) for each in gap] == [
        ("2026-10-01T00:00:00.000Z", "2026-10-03T00:00:00.000Z")
    ]
    books_told = statement["books"]
    assert (books_told["held_gpu_hours"], books_told["idle_gpu_hours"]) == (8 * 60, 8 * 12)
    assert books_told["difference_gpu_hours"] == 0
