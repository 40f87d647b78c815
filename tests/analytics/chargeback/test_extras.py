"""Money beside capacity: shared costs, and credits for preempted work."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.canonical import agreement_of, agreement_record
from analytics.chargeback.distribution import Distribution, IdlePolicy, Pool
from analytics.chargeback.extras import BorneBy, Extras, Lost, Preempted, SharedBy, SharedCost
from analytics.chargeback.settle import settle
from analytics.chargeback.statement import COSTS, Billing, Statement, Terms, rolled_up
from analytics.chargeback.stays import Owner, Stay, Stays
from domain.calendar import Period, Unit, billing_zone, cut
from domain.money import Currency, Price, PriceBook
from tests.analytics.chargeback.test_chargeback import DAY, MARCH, hour, node, stay
from tests.analytics.chargeback.worlds import WINDOW, ZONES, World, worlds

EUR = Currency.of("EUR")
LENGTHS = {day.label: MARCH.end_ms - MARCH.start_ms for day in cut(MARCH.window, ZONES[0], Unit.DAY)}
POOL = Pool(cluster="c", gpu_model="A100", day="2026-03-02")


def settled(held: list[Stay], extras: Extras, policy: IdlePolicy = IdlePolicy.NONE) -> Statement:
    return settle(
        Stays.of(held), [node(0, 24)], period=MARCH, zone=ZONES[0],
        book=PriceBook([Price(listed=Decimal(2), valid_from_ms=0)]),
        terms=Terms(currency=EUR, distribution=Distribution(policy=policy)),
        extras=replace(extras, month_ms=LENGTHS),
    )  # fmt: skip


def by(found: Statement, *names: str) -> dict[tuple[str, ...], Decimal]:
    rows = rolled_up(found.rows, names)
    return {tuple(getattr(row, name) for name in names): row.list_cost for row in rows if row.list_cost}


@pytest.mark.parametrize(
    ("how", "ash", "birch"), [(SharedBy.USE, "8.00", "2.00"), (SharedBy.EVENLY, "5.00", "5.00")]
)
def test_a_fixed_cost_is_borne_day_by_day_by_who_was_there(how: SharedBy, ash: str, birch: str) -> None:
    # 310 a month are 10 a day; nobody was there on the other thirty days.
    extras = Extras(shared=[SharedCost(name="storage", monthly=Decimal(310), by=how)])
    found = settled([stay("ash", 4, 0, 4), stay("birch", 1, 0, 4)], extras)
    told = {
        key[1]: amount for key, amount in by(found, "kind", "team", "project").items() if key[2] == "storage"
    }
    assert told == {"ash": Decimal(ash), "birch": Decimal(birch), "__unallocated__": Decimal("300.00")}
    # The books of capacity do not know of it.
    assert sum(row.micro_gpu_ms for row in found.rows if row.kind == "shared") == 0
    assert found.hours.difference == 0


def test_a_fixed_cost_that_is_shared_by_quota_does_not_look_at_use() -> None:
    quotas = {POOL: {"ash": 1, "birch": 3}}
    extras = Extras(
        shared=[SharedCost(name="storage", monthly=Decimal(310), by=SharedBy.QUOTA)], month_ms=LENGTHS
    )
    found = settle(
        Stays.of([stay("ash", 4, 0, 4)]), [node(0, 24)], period=MARCH, zone=ZONES[0],
        book=PriceBook([Price(listed=Decimal(2), valid_from_ms=0)]),
        terms=Terms(currency=EUR, distribution=Distribution(quotas=quotas)), extras=extras,
    )  # fmt: skip
    told = {key[1]: amount for key, amount in by(found, "kind", "team").items() if key[0] == "shared"}
    assert told == {"ash": Decimal("2.50"), "birch": Decimal("7.50"), "__unallocated__": Decimal("300.00")}


def test_lost_work_is_credited_at_the_mean_price_of_its_day_or_else_of_the_month() -> None:
    hour_of_a_gpu = 3_600_000 * 1_000_000
    dearer = PriceBook(
        [Price(listed=Decimal(2), valid_from_ms=0), Price(listed=Decimal(6), valid_from_ms=hour(24))]
    )
    credits_of = {}
    for day in ("2026-03-02", "2026-03-03", "2026-03-09"):
        lost = Lost(pool=replace(POOL, day=day), owner=Owner(team="ash"), preemptor="oak",
                    micro_gpu_ms=hour_of_a_gpu)  # fmt: skip
        found = settle(
            Stays.of([stay("ash", 1, 0, 8), stay("ash", 1, 24, 32)]), [node(0, 48)], period=MARCH,
            zone=ZONES[0], book=dearer, terms=Terms(currency=EUR),
            extras=Extras(lost=[lost], month_ms=LENGTHS),
        )  # fmt: skip
        credits_of[day] = by(found, "kind")["preemption_credit",]
    assert list(credits_of.values()) == [Decimal("-2.00"), Decimal("-6.00"), Decimal("-4.00")]


def test_a_fixed_cost_begins_and_ends_with_a_day() -> None:
    second = DAY + 24 * 3_600_000
    extras = Extras(shared=[SharedCost(name="ops", monthly=Decimal(31), from_ms=DAY, to_ms=second)])
    assert by(settled([], extras), "kind")["shared",] == Decimal("1.00")


@pytest.mark.parametrize(
    ("borne_by", "bearer"),
    [
        (BorneBy.NOBODY, ("preemption_charge", "__preempted__")),
        (BorneBy.PREEMPTOR, ("preemption_charge", "oak")),
    ],
)
def test_lost_work_is_credited_to_the_victim_and_borne_as_agreed(
    borne_by: BorneBy, bearer: tuple[str, str]
) -> None:
    three = 3 * 3_600_000 * 1_000_000
    lost = Lost(pool=POOL, owner=Owner(team="ash", user="ada"), preemptor="oak", micro_gpu_ms=three)
    found = settled([stay("ash", 1, 0, 8)], Extras(lost=[lost], borne_by=borne_by))
    told = by(found, "kind", "team")
    assert (told["held", "ash"], told["preemption_credit", "ash"]) == (Decimal("16.00"), Decimal("-6.00"))
    assert told[bearer] == Decimal("6.00")
    assert found.total().list_cost == settled([stay("ash", 1, 0, 8)], Extras()).total().list_cost
    unknown = replace(lost, preemptor="")
    told = by(settled([stay("ash", 1, 0, 8)], Extras(lost=[unknown], borne_by=borne_by)), "kind", "team")
    assert told["preemption_charge", "__preempted__"] == Decimal("6.00")


@pytest.mark.parametrize("borne_by", BorneBy)
def test_a_credit_and_what_it_is_borne_by_leave_the_total_to_the_cent(borne_by: BorneBy) -> None:
    # 0.124 on top of whole cents; with a credit of 0.004 that would be 0.128 less 0.004, each rounded: 0.13.
    shared = [SharedCost(name="ops", monthly=Decimal("0.124"))]
    lost = Lost(pool=POOL, owner=Owner(team="ash"), preemptor="oak", micro_gpu_ms=7_200 * 1_000_000)
    held = [stay("ash", 1, 0, 8)]
    without, found = (
        settled(held, Extras(shared=shared, lost=some, borne_by=borne_by)) for some in ([], [lost])
    )
    assert "preemption_credit" in {row.kind for row in found.rows}
    assert found.total().list_cost == without.total().list_cost == found.exact_costs[0]


def test_lost_work_that_is_borne_as_idle_goes_to_who_bears_idle_capacity() -> None:
    lost = Lost(pool=POOL, owner=Owner(team="ash"), preemptor="oak", micro_gpu_ms=3_600_000_000_000)
    held = [stay("ash", 1, 0, 6), stay("birch", 1, 0, 2)]
    before = by(settled(held, Extras(), IdlePolicy.BY_USE), "kind", "team")
    after = by(settled(held, Extras(lost=[lost], borne_by=BorneBy.IDLE), IdlePolicy.BY_USE), "kind", "team")
    shares = [after["idle_share", team] - before["idle_share", team] for team in ("ash", "birch")]
    assert shares == [Decimal("1.50"), Decimal("0.50")]


amounts = st.decimals(0, 10_000, places=3, allow_nan=False, allow_infinity=False)
costs = st.lists(
    st.builds(SharedCost, name=st.sampled_from("xy"), monthly=amounts, by=st.sampled_from(SharedBy)),
    max_size=2,
)
losses = st.lists(
    st.builds(
        Lost,
        pool=st.builds(Pool, cluster=st.just("c"), gpu_model=st.sampled_from("AB"),
                       day=st.sampled_from(["2026-10-24", "2026-10-25"])),
        owner=st.builds(Owner, team=st.sampled_from(["ash", "gone"])), preemptor=st.sampled_from(["", "oak"]),
        micro_gpu_ms=st.integers(1, 10**13),
    ),
    max_size=3,
)  # fmt: skip


@settings(max_examples=25)
@given(
    worlds(), costs, losses, st.sampled_from(BorneBy), st.sampled_from(IdlePolicy),
    st.sampled_from((0, 2, 3)), st.sampled_from(Billing), st.integers(1, 40),
)  # fmt: skip
def test_rows_sum_to_the_total_to_the_cent_under_every_policy_currency_and_number_of_teams(  # noqa: PLR0917
    world: World, shared: Sequence[SharedCost], lost: list[Lost], borne_by: BorneBy, idle: IdlePolicy,
    digits: int, billing: Billing, teams: int,
) -> None:  # fmt: skip
    zone = ZONES[1]
    days = cut(WINDOW, zone, Unit.DAY)
    # Each stay once more, as that of another of so many teams.
    more = [
        replace(each, owners=(Owner(team=f"t{number % teams}"),))
        for number, each in enumerate(world.stays * 3)
    ]
    found = settle(
        Stays.of([*world.stays, *more]), world.stretches,
        period=Period(label="2026-10", start_ms=WINDOW.start_ms, end_ms=WINDOW.end_ms), zone=zone,
        book=PriceBook(world.prices),
        terms=Terms(currency=Currency(code="XXX", digits=digits), billing=billing,
                    distribution=Distribution(policy=idle, unavailable_too=True)),
        extras=Extras(shared=shared, lost=lost, borne_by=borne_by,
                      month_ms={day.label: 745 * 3_600_000 for day in days}),
    )  # fmt: skip
    assert found.hours.difference == 0
    for place, name in enumerate(COSTS[:3]):
        assert sum((getattr(row, name) for row in found.rows), Decimal()) == found.exact_costs[place]
    for row in found.rows:
        assert row.billed_cost == (row.effective_cost if billing is Billing.CHARGEBACK else 0)
        assert -row.list_cost.as_tuple().exponent == digits  # type: ignore[operator]
    by_day = rolled_up(found.rows, ("day",))
    assert sum((row.list_cost for row in by_day), Decimal()) == found.total().list_cost


def test_an_agreement_is_read_back_as_it_was() -> None:
    agreed = Agreement(
        zone=billing_zone("Europe/Berlin"), zone_name="Europe/Berlin", preempted=Preempted.CREDITED,
        preempted_borne_by=BorneBy.IDLE, provider="Acme IT", billing_account="4711",
        shared_costs=(SharedCost(name="net", monthly=Decimal("9.50"), by=SharedBy.QUOTA, to_ms=hour(3)),),
    )  # fmt: skip
    told = agreement_record(agreed)
    assert agreement_of(told, "Europe/Berlin") == agreed
    # A month that was closed before these were settings.
    old = {name: value for name, value in told.items() if name not in {"provider", "billing_account"}}
    usual = Agreement()
    assert agreement_of(old, "Europe/Berlin") == replace(
        agreed, provider=usual.provider, billing_account=usual.billing_account
    )
    assert "net: 9.50 a month, day by day, shared among teams by quota." in agreed.in_words()
    assert Fraction(agreed.shared_costs[0].monthly) == Fraction(19, 2)
