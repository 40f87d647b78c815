"""
Cases drawn from public bug reports about money: C01 to C05.

The adapters rename keys, parse times and convert units; what they ask for is computed by the
calendar, the price book and the chargeback.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

from analytics.chargeback.distribution import share_out
from analytics.chargeback.settle import settle
from analytics.chargeback.statement import Row, Terms, rolled_up
from analytics.chargeback.teams import TeamName, TeamNames, owners
from analytics.chargeback.usage import Cutter, NodeStretch, Owner, Stay, usage_lines
from domain.calendar import Unit, billing_zone, cut, month
from domain.money import Currency, Price, PriceBook, Sku, cost
from domain.quantity import MICRO_PER_GPU
from domain.tenant import Rule, Subject, Tenancy
from domain.window import MS_PER_HOUR, Window, parse_instant
from tests.cases.replay import Json, case

SKU = Sku(gpu_model="any")
USD = Terms(currency=Currency.of("USD"))


def at(written: str) -> int:
    """An instant, a day in UTC, or a time of one day."""
    if len(written) == len("00:40"):
        return parse_instant(f"2026-03-02T{written}:00Z")
    return parse_instant(written if "T" in written else f"{written}T00:00:00Z")


def stay(gpus: int, start: str, end: str, *owned: Owner) -> Stay:
    held = owned or (Owner(team="a"),)
    return Stay(cluster="c", node="n", sku=SKU, micro_gpus=gpus * MICRO_PER_GPU,
                start_ms=at(start), end_ms=at(end), owners=held)  # fmt: skip


def price(usd: str, since: str = "2026-01-01") -> Price:
    return Price(listed=Decimal(usd), valid_from_ms=at(since))


def statement_rows(
    stays: Sequence[Stay], label: str, zone: tzinfo, *prices: Price, **terms: Any
) -> list[Row]:
    """The rows of a month, without capacity."""
    agreed = replace(USD, **terms)
    period = month(label, zone)
    return list(settle(stays, [], period=period, zone=zone, book=PriceBook(prices), terms=agreed).rows)


def check(answer: Json, expected: Json) -> None:
    assert answer == {name: value for name, value in expected.items() if name != "must_not"}


def test_c01_the_hour_of_the_clock_change_stays_in_its_month() -> None:
    given, expected = case("C01-month-boundary-with-dst")
    job, zone = given["data"]["job"], billing_zone("Europe/Berlin")
    held = stay(job["gpus"], job["start"], job["end"])
    rows = {label: statement_rows([held], label, zone, price("2.00")) for label in ("2026-10", "2026-11")}
    sums = {label: rolled_up(found, ())[0] for label, found in rows.items()}
    (changed,) = rolled_up([row for row in rows["2026-10"] if row.day == "2026-10-25"], ())
    answer = {
        "hours_in_month": {label: month(label, zone).hours for label in sums},
        "gpu_hours": {label: total.gpu_hours for label, total in sums.items()},
        "cost_usd": {label: str(total.list_cost) for label, total in sums.items()},
        "gpu_hours_on_2026_10_25": changed.gpu_hours,
    }
    check(answer, expected)


def test_c02_a_later_price_changes_nothing_before_it() -> None:
    given, expected = case("C02-price-change-mid-month")
    job, told = given["data"]["job"], [*given["data"]["prices"], given["data"]["catalog_update"]]
    held = stay(job["gpus"], job["start"], job["end"])
    prices = [price(one["usd_per_gpu_hour"], one["from"]) for one in told]
    before, after = (statement_rows([held], "2026-06", UTC, *known) for known in (prices[:-1], prices))
    days = cut(Window(start_ms=held.start_ms, end_ms=held.end_ms or 0), UTC, Unit.DAY)
    lines, _ = usage_lines([held], Cutter.over(days, [], PriceBook(prices)))
    answer = {
        "cost_usd": str(rolled_up(before, ())[0].list_cost),
        "cost_usd_after_catalog_update": str(rolled_up(after, ())[0].list_cost),
        "lines": [
            {
                "gpu_hours": Fraction(line.micro_gpu_ms, MICRO_PER_GPU * MS_PER_HOUR),
                "usd_per_gpu_hour": str(line.price.listed),
                "cost_usd": str(USD.currency.round(cost(line.micro_gpu_ms, line.price.listed))),
            }
            for line in lines
        ],
    }
    check(answer, expected)


def test_c03_idle_is_never_negative_and_the_books_close() -> None:
    given, expected = case("C03-idle-cost-not-negative")
    node, pods = given["data"]["node"], given["data"]["pods"]
    stays = [stay(pod["gpus"], pod["start"], pod["gone"], Owner(team=pod["name"])) for pod in pods]
    gpus = node["gpus"] * MICRO_PER_GPU
    there = NodeStretch(cluster="c", node="n", sku=SKU, start_ms=at(node["from"]), end_ms=at(node["to"]),
                        capacity_micro_gpus=gpus, allocatable_micro_gpus=gpus)  # fmt: skip
    book = PriceBook([price(node["usd_per_gpu_hour"])])
    settled = settle(stays, [there], period=month("2026-03", UTC), zone=UTC, book=book, terms=USD)
    by = {(row.kind, row.team): row.list_cost for row in rolled_up(settled.rows, ("kind", "team"))}
    answer = {
        "charged_usd": {pod["name"]: str(by["held", pod["name"]]) for pod in pods},
        "idle_usd": str(by.get(("idle", "__idle__"), USD.currency.amount(0))),
        "overlap_adjustment_usd": str(by["overlap", "__overlap__"]),
        "total_usd": str(settled.total().list_cost),
    }
    check(answer, expected)
    assert settled.hours.difference == 0


def test_c04_parts_sum_to_the_invoice() -> None:
    given, expected = case("C04-cents-that-do-not-add-up")
    parts = {}
    for invoice in given["data"]["invoices"]:
        usage = {team: Fraction(str(hours)) for team, hours in invoice["gpu_hours"].items()}
        shares = share_out(Decimal(invoice["total"]), usage, USD.currency)
        assert sum(shares.values()) == Decimal(invoice["total"])
        parts[invoice["id"]] = {team: str(share) for team, share in shares.items()}
    check({"parts": parts}, expected)


def c05_tenancy(mapping: list[Json]) -> Tenancy:
    return Tenancy(teams=tuple(
        Rule(namespace=one["ns"], value=str(one["team_id"]), valid_from_ms=at(one["from"]),
             valid_to_ms=at(one["to"]) if one["to"] else None)
        for one in mapping
    ))  # fmt: skip


def c05_stay(day: str, namespace: str, gpus: int, tenancy: Tenancy) -> Stay:
    """So many GPUs for the first hour of the day."""
    subject = Subject(namespace=namespace, namespace_labels={}, labels={}, queue="", priority_class="")
    return stay(gpus, day, f"{day}T01:00:00Z", *owners(tenancy, [(at(day), subject)]))


def test_c05_a_renamed_team_is_one_row_and_a_deleted_namespace_still_pays() -> None:
    given, expected = case("C05-renamed-team-deleted-namespace")
    tenancy = c05_tenancy(given["data"]["namespace_team"])
    names = TeamNames(tuple(
        TeamName(team=str(one["team_id"]), name=one["name"], from_ms=at(one["from"]))
        for one in given["data"]["team_names"]
    ))  # fmt: skip
    stays = [c05_stay(day, namespace, gpus, tenancy) for day, namespace, gpus in given["data"]["usage"]]
    rows = statement_rows(stays, "2026-06", UTC, price("2.00"), names=names)
    teams = {row.team: row for row in rolled_up(rows, ("team",))}
    answer = {
        "gpu_hours_by_team": {team: row.gpu_hours for team, row in teams.items()},
        "cost_usd_by_team": {team: str(row.list_cost) for team, row in teams.items()},
        "total_usd": str(rolled_up(rows, ())[0].list_cost),
    }
    check(answer, expected)
