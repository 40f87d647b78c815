"""
Cases drawn from public bug reports about money: C01 to C05.

The adapters rename keys, parse times and convert units; what they ask for is computed by the
calendar, the price book and the chargeback.
"""

from decimal import Decimal
from fractions import Fraction

from analytics.chargeback.distribution import share_out
from analytics.chargeback.statement import rolled_up
from analytics.chargeback.usage import Owner
from domain.calendar import billing_zone, month
from tests.cases.billing import (
    USD,
    first_hour,
    node,
    price,
    priced_lines,
    statement,
    stay,
    team_names,
    tenancy,
    total,
)
from tests.cases.replay import Json, case


def check(answer: Json, expected: Json) -> None:
    assert answer == {name: value for name, value in expected.items() if name != "must_not"}


def test_c01_the_hour_of_the_clock_change_stays_in_its_month() -> None:
    given, expected = case("C01-month-boundary-with-dst")
    job, zone = given["data"]["job"], billing_zone("Europe/Berlin")
    held, months = stay(job["gpus"], job["start"], job["end"]), ("2026-10", "2026-11")
    found = {label: statement([held], label, price("2.00"), zone=zone) for label in months}
    days = {row.day: row.gpu_hours for row in rolled_up(found["2026-10"].rows, ("day",))}
    answer = {
        "hours_in_month": {label: month(label, zone).hours for label in months},
        "gpu_hours": {label: each.total().gpu_hours for label, each in found.items()},
        "cost_usd": {label: str(each.total().list_cost) for label, each in found.items()},
        "gpu_hours_on_2026_10_25": days["2026-10-25"],
    }
    check(answer, expected)


def test_c02_a_later_price_changes_nothing_before_it() -> None:
    given, expected = case("C02-price-change-mid-month")
    job, told = given["data"]["job"], [*given["data"]["prices"], given["data"]["catalog_update"]]
    held = stay(job["gpus"], job["start"], job["end"])
    prices = [price(one["usd_per_gpu_hour"], one["from"]) for one in told]
    answer = {
        "cost_usd": str(statement([held], "2026-06", *prices[:-1]).total().list_cost),
        "cost_usd_after_catalog_update": str(statement([held], "2026-06", *prices).total().list_cost),
        "lines": priced_lines(held, *prices),
    }
    check(answer, expected)


def test_c03_idle_is_never_negative_and_the_books_close() -> None:
    given, expected = case("C03-idle-cost-not-negative")
    there, pods = given["data"]["node"], given["data"]["pods"]
    stays = [stay(pod["gpus"], pod["start"], pod["gone"], Owner(team=pod["name"])) for pod in pods]
    nodes, cost = [node(there["gpus"], there["from"], there["to"])], price(there["usd_per_gpu_hour"])
    settled = statement(stays, "2026-03", cost, nodes=nodes)
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


def test_c05_a_renamed_team_is_one_row_and_a_deleted_namespace_still_pays() -> None:
    given, expected = case("C05-renamed-team-deleted-namespace")
    rules, names = tenancy(given["data"]["namespace_team"]), team_names(given["data"]["team_names"])
    stays = [first_hour(day, namespace, gpus, rules) for day, namespace, gpus in given["data"]["usage"]]
    rows = statement(stays, "2026-06", price("2.00"), names=names).rows
    teams = {row.team: row for row in rolled_up(rows, ("team",))}
    answer = {
        "gpu_hours_by_team": {team: row.gpu_hours for team, row in teams.items()},
        "cost_usd_by_team": {team: str(row.list_cost) for team, row in teams.items()},
        "total_usd": total(rows),
    }
    check(answer, expected)
