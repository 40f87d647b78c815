"""A node whose label of the model comes, or changes, while pods hold its GPUs: the month balances."""

from dataclasses import replace
from decimal import Decimal

import pytest

from analytics.chargeback.extras import Preempted
from domain.money import Price, PriceBook
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books
from tests.service.closing_world import closer
from tests.service.test_chargeback import AGREED, FIRST, caused, hold, hours, node, stored, told

MONTH = 31 * 24
# The label comes after an hour, in which the pod of red holds a GPU for half an hour already.
LABELLED, BOUND, RELEASED = 1, 0.5, 10


def relabelled(*pieces: dict[str, object], first: str = "") -> Store:
    """A node of two GPUs, without a model until its label came; a hold has the model of its beginning."""
    books = Books()
    node(books, FIRST, hours(LABELLED), gpus=2, gpu_model=first)
    node(books, hours(LABELLED), hours(MONTH), gpus=2)
    hold(books, "r", hours(BOUND), hours(RELEASED), team="red")
    books.tables["holding"] = [{**row, "gpu_model": first} for row in books.tables["holding"]]
    store = stored(books)
    store.replace(
        "north", [Replacement(table="waste_piece", rows=[{**each, "gpu_model": first} for each in pieces])]
    )
    return store


def by_model(store: Store, figure: str) -> dict[str, float]:
    rows = told(store, "gpu_model", "kind", as_of_ms=hours(MONTH) + 1)["rows"]
    return {row["gpu_model"]: row[figure] for row in rows if row["kind"] == "held"}


@pytest.mark.parametrize("first", ["", "A100-OLD"])
def test_a_month_in_which_a_label_came_late_balances_and_is_closed(first: str) -> None:
    store = relabelled(
        caused("r", hours(BOUND), hours(4), "useful"),
        caused("r", hours(4), hours(RELEASED), "idle"),
        first=first,
    )
    assert by_model(store, "useful_gpu_hours") == {first: 0.5, "A100": 3}
    assert by_model(store, "idle_gpu_hours") == {first: 0, "A100": 6}
    assert by_model(store, "unattributed_gpu_hours") == {first: 0, "A100": 0}
    sure = replace(AGREED, close_coverage=0)
    checks = closer(store, MONTH + 5, sure).close("2026-10", who="fin").checks
    store.close()
    assert [each.name for each in checks if not each.holds] == []


def test_a_loss_of_before_the_label_is_adjusted_under_the_model_that_the_node_had() -> None:
    # All of it turns out to be lost on the next day.
    store = relabelled(caused("r", hours(BOUND), hours(RELEASED), "crash_lost", hours(30)))
    rows = told(store, "kind", "day", "gpu_model", as_of_ms=hours(48))["rows"]
    store.close()
    adjusted = {row["gpu_model"]: row for row in rows if row["kind"] == "loss_adjustment"}
    lost = {model: (row["useful_gpu_hours"], row["crash_lost_gpu_hours"]) for model, row in adjusted.items()}
    assert lost == {"": (-0.5, 0.5), "A100": (-9, 9)}


def test_what_a_preemption_lost_is_credited_at_the_price_of_the_model_that_the_node_had() -> None:
    store = relabelled(caused("r", hours(BOUND), hours(RELEASED), "preempted_lost", hours(RELEASED)))
    book = PriceBook(
        (
            Price(listed=Decimal(1), valid_from_ms=0),
            Price(listed=Decimal(3), gpu_model="A100", valid_from_ms=0),
        )
    )
    agreed = replace(AGREED, book=book, preempted=Preempted.CREDITED)
    rows = told(store, "kind", agreed=agreed, as_of_ms=hours(48))["rows"]
    store.close()
    costs = {row["kind"]: row["effective_cost"] for row in rows}
    # All that was held was lost: half an hour at 1 and nine at 3.
    assert (costs["held"], costs["preemption_credit"]) == (Decimal("27.50"), Decimal("-27.50"))
