"""The cases C01 to C04 through the store and the close: what was signed says what the case expects."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.extras import SharedBy, SharedCost
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.statement import rolled_up
from domain.calendar import billing_zone, month
from domain.money import Currency, Price, PriceBook
from domain.policy import Policy
from domain.window import MS_PER_HOUR, FixedClock
from service.closing import Closer
from service.statements import statement_of
from store.embedded import Store
from tests.build import Books
from tests.cases.billing import at, price
from tests.cases.replay import case
from tests.service.closing_world import NOBODY
from tests.service.test_chargeback import hold, node, stored

MS_PER_DAY = 24 * MS_PER_HOUR
FREE = Price(listed=Decimal(0), valid_from_ms=0)


def agreement(*prices: Price, zone: str = "UTC", **terms: Any) -> Agreement:
    return Agreement(
        currency=Currency.of("USD"), book=PriceBook(prices), zone=billing_zone(zone), zone_name=zone, **terms
    )


def closed(store: Store, label: str, agreed: Agreement) -> MonthStatement:
    """The month, closed a day after its end, and read again by what was agreed on later."""
    end_ms = month(label, agreed.zone).end_ms
    closer = Closer(store=store, agreement=agreed, policy=Policy(), tenancy=NOBODY,
                    clock=FixedClock(end_ms + MS_PER_DAY))  # fmt: skip
    signed = closer.close(label, who="fin", reason="a case")
    dearer = replace(agreed, book=PriceBook((Price(listed=Decimal(99), valid_from_ms=0),)))
    read = statement_of(
        store, dearer, Policy(), label=label, as_of_ms=end_ms + 90 * MS_PER_DAY, tenancy=NOBODY
    )
    assert read.closing == signed.closing
    return read


def total(statement: MonthStatement) -> str:
    return str(sum((line.row.list_cost for line in statement.lines), Decimal()))


def of_job(given: Any) -> Store:
    books, job = Books(), given["data"]["job"]
    hold(books, "j", at(job["start"]), at(job["end"]), micro_gpus=job["gpus"] * 1_000_000, team="a")
    return stored(books)


def test_c01_both_months_are_closed_in_either_order() -> None:
    given, expected = case("C01-month-boundary-with-dst")
    found = []
    for order in (("2026-10", "2026-11"), ("2026-11", "2026-10")):
        store = of_job(given)
        agreed = agreement(price("2.00"), zone="Europe/Berlin")
        months = {label: closed(store, label, agreed) for label in order}
        assert {label: total(each) for label, each in months.items()} == expected["cost_usd"]
        days = rolled_up([line.row for line in months["2026-10"].lines], ("day",))
        assert {row.day: row.gpu_hours for row in days}["2026-10-25"] == expected["gpu_hours_on_2026_10_25"]
        found.append({label: each.lines for label, each in months.items()})
        store.close()
    assert found[0] == found[1]


def test_c02_a_catalogue_that_is_updated_after_the_close_changes_nothing() -> None:
    given, expected = case("C02-price-change-mid-month")
    store = of_job(given)
    prices = [price(one["usd_per_gpu_hour"], one["from"]) for one in given["data"]["prices"]]
    june = closed(store, "2026-06", agreement(*prices))
    assert total(june) == expected["cost_usd"]
    # Each line says by which row of the price book it was priced.
    told = {line.row.day: [june.prices[each].listed for each in line.row.prices] for line in june.lines}
    assert told == {"2026-06-14": [Decimal("2.00")], "2026-06-15": [Decimal("2.50")]}
    store.close()


def test_c03_idle_that_is_signed_is_never_negative() -> None:
    given, expected = case("C03-idle-cost-not-negative")
    there, books = given["data"]["node"], Books()
    node(books, at(there["from"]), at(there["to"]), gpus=there["gpus"])
    for pod in given["data"]["pods"]:
        hold(books, pod["name"], at(pod["start"]), at(pod["gone"]), micro_gpus=pod["gpus"] * 1_000_000,
             team=pod["name"])  # fmt: skip
    store = stored(books)
    signed = closed(store, "2026-03", agreement(price(there["usd_per_gpu_hour"])))
    by = {(row.kind, row.team): str(row.list_cost) for row in rolled_up([line.row for line in signed.lines],
                                                                      ("kind", "team"))}  # fmt: skip
    assert {team: by["held", team] for team in ("a", "b")} == expected["charged_usd"]
    assert by.get(("idle", "__idle__"), "0.00") == expected["idle_usd"]
    assert by["overlap", "__overlap__"] == expected["overlap_adjustment_usd"]
    assert total(signed) == expected["total_usd"]
    assert signed.hours is not None
    assert signed.hours.difference == 0
    store.close()


def test_c04_an_invoice_that_is_shared_by_use_sums_to_itself_when_it_is_signed() -> None:
    given, expected = case("C04-cents-that-do-not-add-up")
    # Each invoice is a fixed cost of the first day of a month of its own, which has thirty.
    books, costs, firsts = Books(), [], ("2026-04-01", "2026-06-01", "2026-09-01", "2026-11-01")
    invoices = dict(zip(firsts, given["data"]["invoices"], strict=False))
    for day, invoice in invoices.items():
        first = at(day)
        for team, hours in invoice["gpu_hours"].items():
            hold(books, f"{team}-{day}", first, first + MS_PER_HOUR, team=team,
                 micro_gpus=round(Decimal(str(hours)) * 1_000_000))  # fmt: skip
        costs.append(SharedCost(name=invoice["id"], monthly=Decimal(invoice["total"]) * 30, by=SharedBy.USE,
                                from_ms=first, to_ms=first + MS_PER_DAY))  # fmt: skip
    store, parts = stored(books), {}
    for day, invoice in invoices.items():
        signed = closed(store, day[:7], agreement(FREE, shared_costs=tuple(costs)))
        assert total(signed) == invoice["total"]
        shares = [line.row for line in signed.lines if line.row.kind == "shared"]
        parts[invoice["id"]] = {row.team: str(row.list_cost) for row in shares}
    store.close()
    assert parts == expected["parts"]
