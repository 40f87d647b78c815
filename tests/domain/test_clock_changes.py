"""Every clock change of ten zones, 2024 to 2030: days sum to the month, and months to the year."""

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from analytics.chargeback.settle import settle
from analytics.chargeback.statement import Statement, Terms, rolled_up
from analytics.chargeback.stays import NodeStretch, Owner, Stay, Stays
from domain.calendar import Unit, billing_zone, cut, month
from domain.money import Currency, Price, PriceBook, Sku
from domain.window import MS_PER_HOUR, Window, to_ms

YEARS = range(2024, 2031)
# Changes at midnight, by half an hour, on a Friday, around Ramadan, southern, and none at all.
ZONES = (
    "Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "America/Santiago",
    "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Australia/Lord_Howe", "Asia/Kolkata",
)  # fmt: skip
# Two a year, but for these: of 2030 Ramadan falls twice.
CHANGES = {"Asia/Kolkata": 0, "Africa/Casablanca": 15}
SKU = Sku(gpu_model="A")


def midnight_ms(zone: ZoneInfo, year: int, number: int = 1) -> int:
    """The first instant of a month, found by asking the zone of every half hour, not by our calendar."""
    begin = datetime(year, number, 1, tzinfo=ZoneInfo("UTC")) - timedelta(hours=16)
    instants = (begin + timedelta(minutes=30 * step) for step in range(64))
    return next(
        to_ms(instant) for instant in instants
        if (local := instant.astimezone(zone)).month == number and local.day == 1 and local.year == year
    )  # fmt: skip


@pytest.mark.parametrize("name", ZONES)
def test_days_sum_to_the_month_and_months_to_the_year(name: str) -> None:
    zone = billing_zone(name)
    changes = 0
    for year in YEARS:
        whole = Window(start_ms=midnight_ms(zone, year), end_ms=midnight_ms(zone, year + 1))
        months = [month(f"{year}-{number:02d}", zone) for number in range(1, 13)]
        assert [period.label for period in cut(whole, zone, Unit.MONTH)] == [each.label for each in months]
        assert (months[0].start_ms, months[-1].end_ms) == (whole.start_ms, whole.end_ms)
        assert all(before.end_ms == after.start_ms for before, after in pairwise(months))
        for each in months:
            assert each.start_ms == midnight_ms(zone, year, int(each.label[-2:]))
            days = cut(each.window, zone, Unit.DAY)
            assert sum(day.end_ms - day.start_ms for day in days) == each.end_ms - each.start_ms
            assert [day.label[:7] for day in days] == [each.label] * len(days)
            changes += sum(day.end_ms - day.start_ms != 24 * MS_PER_HOUR for day in days)
    assert changes == CHANGES.get(name, 2 * len(YEARS))


def year_of_money(name: str, year: int) -> list[Statement]:
    """A node of three GPUs all year, of which ash holds a third of one at 0.97 an hour."""
    zone = billing_zone(name)
    start_ms, end_ms = month(f"{year}-01", zone).start_ms, month(f"{year}-12", zone).end_ms
    stays = Stays.of([
        Stay(cluster="c", node="n", sku=SKU, micro_gpus=333_333, start_ms=start_ms, end_ms=end_ms,
             owners=(Owner(team="ash"),))
    ])  # fmt: skip
    there = NodeStretch(cluster="c", node="n", sku=SKU, start_ms=start_ms, end_ms=end_ms,
                        capacity_micro_gpus=3_000_000, allocatable_micro_gpus=3_000_000)  # fmt: skip
    book = PriceBook([Price(listed=Decimal("0.97"), valid_from_ms=0)])
    terms = Terms(currency=Currency.of("EUR"))
    return [
        settle(stays, [there], period=month(f"{year}-{number:02d}", zone), zone=zone, book=book, terms=terms)
        for number in range(1, 13)
    ]


def check_money(name: str, year: int) -> None:
    zone, exact = billing_zone(name), Decimal("0.97")
    hours = 0
    for each in year_of_money(name, year):
        lasted = each.period.end_ms - each.period.start_ms
        assert each.hours.difference == 0
        assert each.hours.capacity == 3_000_000 * lasted
        days = rolled_up(each.rows, ("day",))
        assert sum(day.list_cost for day in days) == each.total().list_cost
        # The month is its exact sum rounded once: three GPUs for so many hours.
        assert each.total().list_cost == round(exact * 3 * lasted / MS_PER_HOUR, 2)
        hours += lasted
    assert hours == month(f"{year + 1}-01", zone).start_ms - month(f"{year}-01", zone).start_ms


def test_money_follows_a_year_of_clock_changes() -> None:
    check_money("Australia/Lord_Howe", 2026)


@pytest.mark.long
@pytest.mark.parametrize("name", ZONES)
def test_money_follows_every_clock_change(name: str) -> None:
    for year in YEARS:
        check_money(name, year)
