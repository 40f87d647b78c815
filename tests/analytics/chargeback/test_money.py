"""Prices and cents: which row of the price book counts, and how amounts are rounded and split."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import PolicyError
from domain.money import (
    MICRO_GPU_MS_PER_GPU_HOUR,
    PARTS,
    CapacityType,
    Currency,
    Price,
    PriceBook,
    Sku,
    apportion,
    cost,
)

EUR = Currency.of("EUR")
H100 = Sku(
    gpu_model="NVIDIA-H100-80GB-HBM3",
    flavor="h100-spot",
    capacity_type=CapacityType.SPOT,
    node_labels=frozenset({("zone", "a"), ("disk", "nvme")}),
)


def price(listed: int, since_ms: int = 0, **conditions: object) -> Price:
    return Price(listed=Decimal(listed), valid_from_ms=since_ms, **conditions)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prices", "listed"),
    [
        # The closest condition wins over the newest date: model, way of buying, flavor, labels.
        ([price(1, 50), price(2, gpu_model="*H100*")], 2),
        ([price(2, gpu_model="*H100*"), price(3, capacity_type=CapacityType.SPOT)], 3),
        ([price(3, capacity_type=CapacityType.SPOT), price(4, flavor="h100-*")], 4),
        ([price(4, flavor="h100-*"), price(5, node_labels=frozenset({("zone", "a")}))], 5),
        # Of the same conditions the newest that holds.
        ([price(1), price(2, 50), price(3, 101)], 2),
        # A row ends before its last instant.
        ([price(1), price(2, 50, valid_to_ms=100)], 1),
        # What does not hold for the SKU does not count.
        ([price(1), price(2, gpu_model="*A100*"), price(3, node_labels=frozenset({("zone", "b")}))], 1),
        ([price(1), price(2, capacity_type=CapacityType.RESERVED)], 1),
    ],
)
def test_the_price_that_names_the_gpu_most_closely_counts(prices: list[Price], listed: int) -> None:
    assert PriceBook(prices).price(H100, 100).listed == listed
    assert PriceBook(prices[::-1]).price(H100, 100).listed == listed


def test_contracted_and_effective_price_are_the_one_before_where_they_are_not_given() -> None:
    def three(one: Price) -> list[int]:
        return [int(each) for each in (one.listed, one.contracted_price, one.effective_price)]

    assert three(price(4)) == [4, 4, 4]
    assert three(price(4, contracted=Decimal(3))) == [4, 3, 3]
    assert three(price(4, contracted=Decimal(3), effective=Decimal(0))) == [4, 3, 0]


def test_a_gpu_without_a_price_is_an_error_and_not_free() -> None:
    with pytest.raises(PolicyError, match="no price for model 'NVIDIA-H100-80GB-HBM3'"):
        PriceBook([price(1, 101)]).price(H100, 100)


@pytest.mark.parametrize("listed", ["-1", "NaN", "Infinity"])
def test_a_price_that_makes_no_sense_is_told(listed: str) -> None:
    with pytest.raises(PolicyError, match="expected a number of at least 0"):
        Price(listed=Decimal(listed), valid_from_ms=0)


def test_a_price_book_does_not_say_two_things_at_once() -> None:
    with pytest.raises(PolicyError, match="stands there twice"):
        PriceBook([price(1), price(2)])


def test_a_price_that_ends_before_it_begins_is_told() -> None:
    with pytest.raises(PolicyError, match="ends before it begins"):
        price(1, 50, valid_to_ms=50)


@pytest.mark.parametrize("code", ["eur", "EURO", "", "€€€"])
def test_a_currency_has_a_code_of_three_capitals(code: str) -> None:
    with pytest.raises(PolicyError, match="ISO 4217"):
        Currency.of(code)


def test_an_amount_has_the_decimals_of_its_currency() -> None:
    third = Fraction(200, 3)
    assert [str(Currency.of(code).round(third)) for code in ("EUR", "JPY", "KWD")] == [
        "66.67",
        "67",
        "66.667",
    ]


@pytest.mark.parametrize(("code", "digits"), [("USD", 2), ("XOF", 0), ("UGX", 0), ("LYD", 3), ("CLF", 4)])
def test_the_minor_unit_of_a_currency_is_that_of_iso_4217(code: str, digits: int) -> None:
    assert Currency.of(code).digits == digits


def test_a_third_of_an_hour_three_times_is_an_hour() -> None:
    # 20 minutes at 1.00 are no finite decimal.
    assert 3 * cost(MICRO_GPU_MS_PER_GPU_HOUR // 3, Decimal("1.00")) == PARTS


@given(st.lists(st.tuples(st.sets(st.sampled_from("abc"), min_size=1), st.integers(0, 50)), min_size=1))
def test_what_is_carried_is_never_lost_and_no_part_is_negative(days: list[tuple[set[str], int]]) -> None:
    carried: dict[str, Fraction] = {}
    for teams, total in days:
        exact = {team: Fraction(total, len(teams)) for team in teams}
        before = sum(carried.values())
        parts = apportion(total, exact, carried)
        assert sum(parts.values()) == total
        assert min(parts.values()) >= 0
        carried |= {team: carried.get(team, Fraction()) + exact[team] - parts[team] for team in teams}
        assert sum(carried.values()) == before


@given(st.lists(st.fractions(0, 9, max_denominator=60), min_size=1, max_size=9))
def test_what_is_left_goes_to_the_largest_remainders(wanted: list[Fraction]) -> None:
    exact = {f"t{number}": each for number, each in enumerate(wanted)}
    parts = apportion(math.ceil(sum(wanted)), exact)
    # Who was rounded up had at least as much to lose as who was rounded down.
    rounded_up = [each % 1 for name, each in exact.items() if parts[name] > each // 1]
    rounded_down = [each % 1 for name, each in exact.items() if parts[name] == each // 1]
    assert min(rounded_up, default=1) >= max(rounded_down, default=0)
    assert all(0 <= parts[name] - each // 1 <= 1 for name, each in exact.items())


def test_nothing_is_split_among_nobody() -> None:
    assert apportion(0, dict[str, Fraction]()) == {}
    with pytest.raises(PolicyError, match="among nobody"):
        apportion(1, dict[str, Fraction]())
    with pytest.raises(PolicyError, match="at least 0"):
        apportion(-1, {"a": Fraction(1)})
