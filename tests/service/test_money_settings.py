"""The price book as it is written: inline, in YAML, in CSV; and what is wrong with it."""

from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analytics.chargeback.agreement import CostCentre
from domain.errors import PolicyError, SettingsError
from domain.money import CapacityType, Sku
from domain.window import parse_instant
from service.money_settings import read_prices
from service.settings_file import load_settings

CSV = """\
model,flavor,capacity_type,valid_from,list,contracted,node_labels
*H100*,,spot,2026-01-01,1.25,,zone=a;tier=gold
*,,,2026-01-01T00:00:00+01:00,2.50,2.00,
"""
YAML = """\
- model: "*H100*"
  capacity_type: spot
  valid_from: 2026-01-01
  list: 1.25
  node_labels: {zone: a, tier: gold}
- {valid_from: 2026-01-01T00:00:00+01:00, list: 2.5, contracted: 2.0}
"""


def money(tmp_path: Path, **section: Any) -> Any:
    import yaml

    file = tmp_path / "gpuledger.yaml"
    file.write_text(yaml.safe_dump({"money": section}))
    return load_settings(file).money.agreement()


@pytest.mark.parametrize(("name", "text"), [("prices.csv", CSV), ("prices.yaml", YAML)])
def test_a_price_file_is_a_table_or_a_list(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    book = money(tmp_path, zone="Europe/Berlin", price_file=str(file)).book
    # The day begins at midnight in Berlin.
    assert {price.valid_from_ms for price in book.prices} == {parse_instant("2025-12-31T23:00:00Z")}
    labels = frozenset({("zone", "a"), ("tier", "gold"), ("more", "x")})
    spot = Sku(gpu_model="NVIDIA-H100-80GB", capacity_type=CapacityType.SPOT, node_labels=labels)
    at_ms = parse_instant("2026-06-01T00:00:00Z")
    assert book.price(spot, at_ms).listed == Decimal("1.25")
    other = book.price(Sku(gpu_model="NVIDIA-L40S"), at_ms)
    assert (other.listed, other.contracted_price) == (Decimal("2.5"), Decimal(2))


def test_prices_stand_in_the_settings_too_and_a_number_is_read_as_it_is_written(tmp_path: Path) -> None:
    prices = [{"valid_from": "2026-01-01", "list": 0.1}]
    agreed = money(tmp_path, currency="EUR", prices=prices, cost_centres={"nlp": "4711"})
    assert (agreed.currency.code, agreed.book.prices[0].listed) == ("EUR", Decimal("0.1"))
    assert agreed.cost_centres == {"nlp": (CostCentre(code="4711"),)}


def test_without_the_section_there_are_no_prices() -> None:
    assert load_settings().money.agreement().book.prices == ()


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"currency": "euro"}, "ISO 4217"),
        ({"zone": "Berlin"}, "IANA"),
        ({"prices": [{"valid_from": "2026-01-01", "list": "cheap"}]}, "amount per GPU-hour"),
        ({"prices": [{"valid_from": "2026-01-01", "list": "-1"}]}, "at least 0"),
        ({"prices": [{"valid_from": "soon", "list": "1"}]}, "RFC 3339"),
        ({"prices": [{"valid_from": "2026-01-01", "list": "1"}] * 2}, "stands there twice"),
        ({"prices": [{"valid_from": "2026-01-01", "list": "1", "modle": "A100"}]}, "modle"),
        ({"price_file": "prices.txt"}, "ends in .csv"),
        ({"price_file": "nowhere.csv"}, "cannot be read"),
        ({"idle": "somehow"}, "by_quota"),
        ({"zone": "Europe/Berln"}, r'money.zone = "Europe/Berln": .* did you mean Europe/Berlin\?'),
        ({"prices": [{"valid_from": "2026-01-01", "lst": "1"}]}, r"prices.0.lst: .* money.prices.0.list\?"),
        ({"prices": [{"valid_from": "2026-01-01"}]}, "prices.0.list: is missing; expected a value"),
    ],
)
def test_a_wrong_price_ends_the_program_at_the_start(
    tmp_path: Path, section: dict[str, Any], says: str
) -> None:
    with pytest.raises(SettingsError, match=says):
        money(tmp_path, **section)


def test_a_wrong_row_of_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("valid_from,list\n2026-01-01,1\n2026-02-01,\n")
    with pytest.raises(SettingsError, match="row 2, list"):
        money(tmp_path, price_file=str(file))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{valid_from: 2026-01-01, lst: 3}", r"row 1, lst: unknown column; did you mean list\?"),
        ("{valid_from: 2026-01-01, list: two}", "row 1, list = 'two': expected an amount per GPU-hour"),
        ("{list: 2}", "row 1, valid_from: is missing; every row has valid_from and list"),
        ("{valid_from: 2026-02-30, list: 2}", "cannot be read .day is out of range"),
    ],
)
def test_a_wrong_row_says_what_was_given_and_what_was_expected(tmp_path: Path, row: str, says: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(f"- {row}\n")
    with pytest.raises(SettingsError, match=says):
        money(tmp_path, price_file=str(file))


def test_a_date_that_no_calendar_has_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "gpuledger.yaml"
    file.write_text("money: {prices: [{valid_from: 2026-02-30, list: 2}]}\n")
    with pytest.raises(SettingsError, match=r"gpuledger\.yaml: a date that no calendar has"):
        load_settings(file)


def test_what_was_bought_is_written_off_by_the_hour(tmp_path: Path) -> None:
    # 35064 over four years of 8766 hours is 1 an hour, and 0.25 for power.
    file = tmp_path / "prices.csv"
    file.write_text(
        "valid_from,list,purchase,years,running,pool,mig_profile\n"
        "2026-01-01,,35064,4,0.25,,\n2026-01-01,0.2,,,,slices-*,1g.5gb\n"
    )
    whole, slice_ = read_prices(file)
    assert (whole.price(UTC).listed, slice_.list) == (Decimal("1.250000"), Decimal("0.2"))
    assert (slice_.price(UTC).pool, slice_.price(UTC).mig_profile) == ("slices-*", "1g.5gb")
    note = "35064 a GPU, written off over 4 years of 8766 hours, and 0.25 an hour for running it"
    assert (whole.price(UTC).note, slice_.price(UTC).note) == (note, "")
    # In YAML too; all hours of five years come to the purchase, to the cent.
    [bought] = money(
        tmp_path, prices=[{"valid_from": "2026-01-01", "purchase": 31_999.99, "years": 5}]
    ).book.prices
    assert round(bought.listed * 5 * 8766, 2) == Decimal("31999.99")


@pytest.mark.parametrize(
    ("years", "valid_to", "ends"),
    [
        (4, None, "2030-01-01T00:00:00.000Z"),
        ("0.5", None, "2026-07-02T15:00:00.000Z"),
        (4, "2028-03-01", "2028-03-01T00:00:00.000Z"),
        (4, "2030-01-01", "2030-01-01T00:00:00.000Z"),
    ],
)
def test_what_was_bought_has_no_price_when_its_years_are_over(
    tmp_path: Path, years: object, valid_to: str | None, ends: str
) -> None:
    row = {"valid_from": "2026-01-01", "purchase": 35064, "years": years}
    book = money(tmp_path, prices=[row if valid_to is None else row | {"valid_to": valid_to}]).book
    a100, end_ms = Sku(gpu_model="A100"), parse_instant(ends)
    assert book.price(a100, end_ms - 1).listed == Decimal(35064) / (Decimal(str(years)) * 8766)
    with pytest.raises(PolicyError, match=rf"'A100'.* \(the last one ended at {ends}\); add a row"):
        book.price(a100, end_ms)
    # What it costs from then on is a row like any other.
    later = {"valid_from": ends, "list": "0.25"}
    assert money(tmp_path, prices=[row, later]).book.price(a100, end_ms).listed == Decimal("0.25")


def test_what_was_bought_cannot_be_paid_for_longer_than_its_years(tmp_path: Path) -> None:
    row = {"valid_from": "2026-01-01", "valid_to": "2030-01-02", "purchase": 35064, "years": 4}
    with pytest.raises(SettingsError, match=r"written off at 2030-01-01T00:00:00\.000Z, after 4 years"):
        money(tmp_path, prices=[row])


@pytest.mark.parametrize(
    ("amounts", "says"),
    [
        (",9,", "row 1, the row = .*expected either list, or purchase and years above 0"),
        (",nan,4", "either list, or purchase"),
        (",inf,4", "either list, or purchase"),
        (",9,0", "either list, or purchase"),
        (",9,101", r"either list, or purchase and years above 0 \(at most 100\)"),
        (",-9,4", "either list, or purchase"),
        ("2.50,9,4", "either list, or purchase"),
        (",1e30,4", "a purchase over years that is an amount per GPU-hour"),
        (",dear,4", "an amount per GPU-hour"),
    ],
)
def test_what_cannot_be_written_off_is_named(tmp_path: Path, amounts: str, says: str) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(f"valid_from,list,purchase,years\n2026-01-01,{amounts}\n")
    with pytest.raises(SettingsError, match=says):
        read_prices(file)


def test_shared_costs_centres_and_preempted_work_are_agreed_on_in_the_settings(tmp_path: Path) -> None:
    agreed = money(
        tmp_path,
        zone="Europe/Berlin",
        shared_costs=[{"name": "storage", "monthly": 1200, "by": "evenly", "valid_from": "2026-10-01"}],
        preempted="credited",
        preempted_borne_by="preemptor",
        provider="Acme IT",
        billing_account="4711",
        cost_centres={
            "nlp": [{"code": "1", "valid_to": "2026-10-01"}, {"code": "2", "valid_from": "2026-10-01"}]
        },
    )
    [storage] = agreed.shared_costs
    october = parse_instant("2026-09-30T22:00:00Z")
    assert (storage.monthly, storage.by, storage.from_ms) == (Decimal(1200), "evenly", october)
    assert (agreed.preempted, agreed.preempted_borne_by) == ("credited", "preemptor")
    assert (agreed.provider, agreed.billing_account) == ("Acme IT", "4711")
    assert [agreed.cost_centre("nlp", at_ms) for at_ms in (october, october + 1)] == ["1", "2"]
    with pytest.raises(SettingsError, match=r"money\.shared_costs: net, monthly = -1"):
        money(tmp_path, shared_costs=[{"name": "net", "monthly": -1}])


@pytest.mark.parametrize("section", ["shared_costs", "cost_centres"])
def test_what_would_never_count_is_named(tmp_path: Path, section: str) -> None:
    never = {"valid_from": "2026-10-01", "valid_to": "2026-10-01"}
    given: Any = {
        "shared_costs": [{"name": "net", "monthly": 1} | never],
        "cost_centres": {"nlp": [{"code": "net"} | never]},
    }
    says = rf"money\.{section}: net, valid_to = 2026-10-01: expected an instant after valid_from"
    with pytest.raises(SettingsError, match=says):
        money(tmp_path, **{section: given[section]})


def test_a_price_that_no_budget_could_keep_is_named(tmp_path: Path) -> None:
    for name in ("list", "contracted", "effective"):
        row = {"valid_from": "2026-01-01", "list": 1} | {name: "1e10"}
        with pytest.raises(SettingsError, match=r"1E\+10: expected at most 1,000,000,000 per GPU-hour"):
            money(tmp_path, prices=[row])
    [price] = money(tmp_path, prices=[{"valid_from": "2026-01-01", "list": 10**9}]).book.prices
    assert price.listed == 10**9
