"""A statement made from days that were added up before is the one that facts give, whatever is learnt."""

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.cutter import Cutter
from analytics.chargeback.stays import NodeStretch
from domain.calendar import Period, Unit, billing_zone, cut
from domain.money import CapacityType, Price, PriceBook, Sku
from domain.window import Window
from service.held_days import _digests, keep, keep_days
from service.settlement import settled
from store import forgetting
from store.embedded import Store
from tests.build import Books
from tests.laws import law
from tests.service.test_chargeback import AGREED, FIRST, hold, hours, node
from tests.service.test_held_sums import LAST, ZONES, lives, rewritten, worlds

MONTH = Period(label="2026-10", start_ms=FIRST, end_ms=hours(31 * 24))
NEXT = hours(31 * 24 + 1)
DAY_MS = 24 * 3_600_000


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.open(None)
    yield store
    store.close()


@pytest.fixture(scope="module")
def used_store() -> Iterator[Store]:
    """One for all examples of a law, which rewrites its books each time."""
    store = Store.open(None)
    yield store
    store.close()


def kept(store: Store) -> list[int]:
    """The days of October that are kept, in UTC."""
    days = store.held_days(start_ms=FIRST, end_ms=NEXT)
    return [1 + (day.start_ms - FIRST) // DAY_MS for day in days]


@law(20, suppress_health_check=[HealthCheck.too_slow])
@given(
    worlds(),
    lives("north"),
    st.sampled_from(ZONES),
    st.integers(0, 24),
    st.sampled_from(["", "news", "of teams", "news of teams"]),
)
def test_a_month_from_kept_days_is_the_one_from_facts(
    used_store: Store,
    world: tuple[list[Books], PriceBook],
    later: Books,
    zone: str,
    first: int,
    asked: str,
) -> None:
    store = used_store
    clusters, prices = world
    agreed = replace(AGREED, book=prices, zone=billing_zone(zone))
    rewritten(store, clusters)
    days = cut(Window(start_ms=FIRST, end_ms=LAST), agreed.zone, Unit.DAY)
    assert keep(store, agreed, days[first : first + 3])
    if "news" in asked:
        rewritten(store, [later])
    period = Period(label="2026-10", start_ms=FIRST, end_ms=LAST)
    found = settled(store, agreed, period, of_teams="teams" in asked)
    with store.transaction() as connection:
        connection.execute("delete from held_day")
    assert settled(store, agreed, period, of_teams="teams" in asked) == found


def october(*, released: float | None = None, gpus: int = 8, team: str = "ash") -> Books:
    """A node; a pod that is there from the 4th on, and one on the 10th."""
    books = Books()
    node(books, hours(0), None, gpus=gpus)
    hold(books, "w0", hours(3 * 24 + 1), None if released is None else hours(released), team=team)
    hold(books, "w1", hours(9 * 24 + 1), hours(9 * 24 + 2), team="birch")
    return books


def test_what_is_learnt_drops_the_days_that_it_is_about(store: Store) -> None:
    rewritten(store, [Books("south", {"node_span": []}), october()])
    assert keep_days(store, AGREED, as_of_ms=NEXT) >= 31
    assert keep_days(store, AGREED, as_of_ms=NEXT) == 0
    assert kept(store) == list(range(1, 32))
    # Nothing new.
    rewritten(store, [october()])
    assert kept(store) == list(range(1, 32))
    # It ended on the 21st.
    rewritten(store, [october(released=20 * 24 + 5)])
    assert kept(store) == list(range(1, 21))
    # It was somebody else's, all the time.
    rewritten(store, [october(released=20 * 24 + 5, team="cedar")])
    assert kept(store) == [1, 2, 3]
    assert keep_days(store, AGREED, as_of_ms=NEXT) == 28


def test_rows_of_teams_come_from_kept_days_as_from_facts(store: Store) -> None:
    books = october()
    for number, user in enumerate(("ann", "bob"), start=2):
        hold(books, f"w{number}", hours(5 * 24), hours(7 * 24 + number), team="birch", user_name=user)
    rewritten(store, [books])
    facts = settled(store, AGREED, MONTH, of_teams=True)
    keep_days(store, AGREED, as_of_ms=NEXT)
    found = settled(store, AGREED, MONTH, of_teams=True)
    assert found == facts
    [sixth] = [line.row for line in found.lines if (line.row.team, line.row.day) == ("birch", "2026-10-06")]
    assert sixth.user == ""
    assert sixth.gpu_hours == 48


def test_days_are_added_up_anew_where_nodes_or_prices_of_the_day_are_others(store: Store) -> None:
    rewritten(store, [october()])
    keep_days(store, AGREED, as_of_ms=NEXT)
    assert keep_days(store, AGREED, as_of_ms=NEXT) == 0
    prices = PriceBook(
        (*AGREED.book.prices, Price(listed=Decimal("3.01"), valid_from_ms=hours(9 * 24 + 1.5)))
    )
    found = settled(store, replace(AGREED, book=prices), MONTH)
    assert keep_days(store, replace(AGREED, book=prices), as_of_ms=NEXT) == 1
    assert settled(store, replace(AGREED, book=prices), MONTH) == found
    assert sorted({row.list_cost for row in found.statement.rows if row.team == "birch"}) == [Decimal("2.69")]
    # The node of all days has other GPUs.
    rewritten(store, [october(gpus=4)])
    assert keep_days(store, AGREED, as_of_ms=NEXT) == 31


def test_a_day_is_told_by_all_that_a_price_may_ask_of_a_node_and_by_its_gpus() -> None:
    days = cut(Window(start_ms=FIRST, end_ms=FIRST + DAY_MS), UTC, Unit.DAY)
    usual = NodeStretch(
        cluster="c", node="n", sku=Sku(gpu_model="A"), start_ms=FIRST, end_ms=None,
        capacity_micro_gpus=8, allocatable_micro_gpus=8,
    )  # fmt: skip
    skus: dict[str, Any] = {
        "gpu_model": "B", "flavor": "f", "pool": "p", "mig_profile": "1g.10gb",
        "capacity_type": CapacityType.SPOT, "node_labels": frozenset({("a", "b")}),
    }  # fmt: skip
    assert skus.keys() == {each.name for each in fields(Sku)}
    nodes: dict[str, Any] = {
        "cluster": "d", "node": "m", "start_ms": FIRST + 1, "end_ms": FIRST + 2, "capacity_micro_gpus": 9,
        "allocatable_micro_gpus": 7, "schedulable": False,
    }  # fmt: skip
    assert nodes.keys() == {each.name for each in fields(NodeStretch)} - {"sku"}
    stretches = [
        usual,
        *(replace(usual, sku=replace(usual.sku, **{name: value})) for name, value in skus.items()),
        *(replace(usual, **{name: value}) for name, value in nodes.items()),
    ]
    told = {_digests(Cutter.over(days, [each], AGREED.book))(days[0].label) for each in stretches}
    assert len(told) == len(stretches)


def test_a_person_who_is_forgotten_is_in_no_kept_day(store: Store) -> None:
    rewritten(store, [october()])
    keep_days(store, Agreement(), as_of_ms=NEXT)
    forgetting.forget(store, "ada", "someone", labels=[])
    assert not store.held_days(start_ms=0, end_ms=NEXT)
