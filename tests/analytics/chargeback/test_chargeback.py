"""Chargeback on examples that can be checked by hand: 2 March 2026, one price of 2.00 per GPU-hour."""

from dataclasses import replace
from datetime import UTC
from decimal import Decimal
from fractions import Fraction

import pytest

from analytics.chargeback.capacity import Hours
from analytics.chargeback.distribution import Distribution, IdlePolicy, Pool
from analytics.chargeback.settle import settle
from analytics.chargeback.statement import Billing, Statement, Terms, rolled_up
from analytics.chargeback.stays import NodeStretch, Owner, Stay, Stays
from domain.calendar import month
from domain.errors import UsageError
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, Currency, Price, PriceBook, Sku
from domain.window import MS_PER_HOUR, parse_instant

MARCH = month("2026-03", UTC)
DAY = parse_instant("2026-03-02T00:00:00Z")
SKU = Sku(gpu_model="A100")
EUR = Terms(currency=Currency.of("EUR"))


def hour(number: float) -> int:
    return DAY + round(number * MS_PER_HOUR)


def stay(team: str, gpus: float | None, begins: float, ends: float | None, node: str = "n1") -> Stay:
    return Stay(cluster="c", node=node, sku=SKU, micro_gpus=None if gpus is None else round(gpus * 1_000_000),
                start_ms=hour(begins), end_ms=None if ends is None else hour(ends),
                owners=(Owner(team=team),))  # fmt: skip


def node(begins: float, ends: float, gpus: int | None = 8, allocatable: int | None = 8, *,
         schedulable: bool = True) -> NodeStretch:  # fmt: skip
    return NodeStretch(cluster="c", node="n1", sku=SKU, start_ms=hour(begins), end_ms=hour(ends),
                       capacity_micro_gpus=None if gpus is None else gpus * 1_000_000,
                       allocatable_micro_gpus=None if allocatable is None else allocatable * 1_000_000,
                       schedulable=schedulable)  # fmt: skip


def settled(stays: list[Stay], nodes: list[NodeStretch], terms: Terms = EUR) -> Statement:
    book = PriceBook([Price(listed=Decimal("2.00"), valid_from_ms=0)])
    return settle(Stays.of(stays), nodes, period=MARCH, zone=UTC, book=book, terms=terms)


def gpu_hours(statement: Statement) -> dict[str, Fraction]:
    return {row.team: row.gpu_hours for row in rolled_up(statement.rows, ("team",))}


def costs(statement: Statement) -> dict[str, str]:
    return {row.team: str(row.list_cost) for row in rolled_up(statement.rows, ("team",))}


def hours(**parts: int) -> Hours:
    return Hours(**{name: part * MICRO_GPU_MS_PER_GPU_HOUR for name, part in parts.items()})


def test_what_a_node_has_beyond_what_it_gives_is_unavailable() -> None:
    # Two hours with 2 of 8 GPUs unhealthy, then two hours cordoned; ash holds 4 in the middle two.
    nodes = [node(0, 2, allocatable=6), node(2, 4, schedulable=False)]
    done = settled([stay("ash", 4, 1, 3)], nodes)
    assert gpu_hours(done) == {"ash": 8, "__idle__": 6 + 2, "__unavailable__": 2 + 2 + 4 + 8}
    assert done.hours == hours(capacity=32, held=8, idle=8, unavailable=16)
    assert costs(done) == {"ash": "16.00", "__idle__": "16.00", "__unavailable__": "32.00"}


def test_gpus_that_fell_ill_under_a_job_are_held_and_no_overlap() -> None:
    done = settled([stay("ash", 8, 0, 1)], [node(0, 1, allocatable=5)])
    assert gpu_hours(done) == {"ash": 8}
    assert done.hours == hours(capacity=8, held=8)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # ash holds 4, birch 2 and cedar has quota for 2 of 8 GPUs for 6 hours: 12 GPU-hours are idle.
        (IdlePolicy.NONE, {"ash": 24, "birch": 12, "__idle__": 12}),
        (IdlePolicy.BY_USE, {"ash": 24 + 8, "birch": 12 + 4}),
        (IdlePolicy.BY_QUOTA, {"ash": 24 + 9, "birch": 12, "cedar": 3}),
        (IdlePolicy.EVENLY, {"ash": 24 + 4, "birch": 12 + 4, "cedar": 4}),
    ],
)
def test_idle_capacity_is_borne_as_the_policy_says(policy: IdlePolicy, expected: dict[str, int]) -> None:
    quotas = {Pool(cluster="c", gpu_model="A100", day="2026-03-02"): {"ash": 6, "cedar": 2}}
    terms = replace(EUR, distribution=Distribution(policy=policy, quotas=quotas))
    done = settled([stay("ash", 4, 0, 6), stay("birch", 2, 0, 6)], [node(0, 6)], terms)
    assert gpu_hours(done) == expected
    assert done.hours == hours(capacity=48, held=36, idle=12)


def test_shared_idle_capacity_that_nobody_used_is_unallocated() -> None:
    terms = replace(EUR, distribution=Distribution(policy=IdlePolicy.BY_USE))
    assert costs(settled([], [node(0, 1)], terms)) == {"__unallocated__": "16.00"}


def test_unavailable_capacity_is_distributed_only_where_the_policy_says_so() -> None:
    world = ([stay("ash", 6, 0, 1)], [node(0, 1, allocatable=6)])
    by_use = Distribution(policy=IdlePolicy.BY_USE)
    assert gpu_hours(settled(*world, replace(EUR, distribution=by_use))) == {"ash": 6, "__unavailable__": 2}
    too = replace(EUR, distribution=replace(by_use, unavailable_too=True))
    assert gpu_hours(settled(*world, too)) == {"ash": 8}


def test_what_cannot_be_known_is_told_and_not_counted_as_nothing() -> None:
    done = settled(
        [stay("ash", None, 0, 1), stay("birch", 1, 2, 3, node="n9"), stay("cedar", 1, 4, 5)],
        [node(0, 1), node(4, 5, gpus=None)],
    )
    assert [(each.node, each.because) for each in done.unknown] == [
        ("n1", "a pod holds GPUs of which the quantity is not known"),
        ("n1", "the node's GPUs are not known"),
        ("n9", "GPUs are held on a node that is not known then"),
    ]
    assert gpu_hours(done)["birch"] == 1
    assert done.hours == hours(capacity=10, held=2, idle=8)


def test_who_pays_a_third_each_day_pays_a_third_of_the_month() -> None:
    # 31 days x 10 GPU-minutes: 0.33 1/3 a day, 10.33 1/3 in March. Without carrying, the first of
    # three such teams would pay 10.54 and the others 10.23.
    stays = [stay(team, 1, 24 * day, 24 * day + 1 / 6) for team in ("a", "b", "c") for day in range(-1, 30)]
    paid = costs(settled(stays, []))
    assert sorted(paid.values()) == ["10.33", "10.33", "10.34"]
    assert sum(map(Decimal, paid.values())) == Decimal("31.00")


def test_a_showback_bills_nothing_and_a_chargeback_the_effective_cost() -> None:
    book = PriceBook(
        [Price(listed=Decimal(4), contracted=Decimal(3), effective=Decimal("2.5"), valid_from_ms=0)]
    )
    for billing, billed in ((Billing.SHOWBACK, "0.00"), (Billing.CHARGEBACK, "5.00")):
        terms = replace(EUR, billing=billing)
        stays = Stays.of([stay("ash", 2, 0, 1)])
        total = settle(stays, [], period=MARCH, zone=UTC, book=book, terms=terms).total()
        shown = (total.list_cost, total.contracted_cost, total.effective_cost, total.billed_cost)
        assert list(map(str, shown)) == ["8.00", "6.00", "5.00", billed]


def test_a_month_without_anything_costs_nothing() -> None:
    assert str(settled([], []).total().list_cost) == "0.00"


def test_a_stay_over_the_edge_of_a_day_and_of_a_team_pays_for_each() -> None:
    moving = Stay(cluster="c", node="n1", sku=SKU, micro_gpus=1_000_000, start_ms=hour(20), end_ms=hour(30),
                  owners=(Owner(team="ash", from_ms=hour(23)),
                          Owner(team="birch", from_ms=hour(26))))  # fmt: skip
    rows = {(row.day, row.team): row.gpu_hours for row in settled([moving], []).rows}
    assert rows == {("2026-03-02", "ash"): 4, ("2026-03-03", "ash"): 2, ("2026-03-03", "birch"): 4}


def test_a_dimension_that_does_not_exist_is_told() -> None:
    with pytest.raises(UsageError, match="dimension 'colour'"):
        rolled_up([], ("colour",))
