"""Feeding the stays, nodes and prices of a case to the calendar, the price book and the chargeback."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

from analytics.chargeback.cutter import Cutter
from analytics.chargeback.settle import settle
from analytics.chargeback.statement import Row, Statement, Terms, rolled_up
from analytics.chargeback.stays import NodeStretch, Owner, Stay, Stays
from analytics.chargeback.usage import usage_lines
from domain.calendar import Unit, cut, month
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, PARTS, Currency, Price, PriceBook, Sku, cost
from domain.quantity import MICRO_PER_GPU
from domain.window import Window, parse_instant
from tests.cases.replay import Json

SKU = Sku(gpu_model="any")
USD = Terms(currency=Currency.of("USD"))


def at(written: str) -> int:
    """An instant, a day in UTC, or a time of one day."""
    if len(written) == len("00:40"):
        return parse_instant(f"2026-03-02T{written}:00Z")
    return parse_instant(written if "T" in written else f"{written}T00:00:00Z")


def stay(gpus: int, start: str, end: str, *owned: Owner) -> Stay:
    """GPUs of the one node, by default of one team."""
    held = owned or (Owner(team="a"),)
    return Stay(cluster="c", node="n", sku=SKU, micro_gpus=gpus * MICRO_PER_GPU,
                start_ms=at(start), end_ms=at(end), owners=held)  # fmt: skip


def node(gpus: int, start: str, end: str) -> NodeStretch:
    """The one node."""
    quantity = gpus * MICRO_PER_GPU
    return NodeStretch(cluster="c", node="n", sku=SKU, start_ms=at(start), end_ms=at(end),
                       capacity_micro_gpus=quantity, allocatable_micro_gpus=quantity)  # fmt: skip


def price(usd: str, since: str = "2026-01-01") -> Price:
    """A price for everything from a day on."""
    return Price(listed=Decimal(usd), valid_from_ms=at(since))


def statement(
    stays: Sequence[Stay],
    label: str,
    *prices: Price,
    zone: tzinfo = UTC,
    nodes: Sequence[NodeStretch] = (),
    **terms: Any,
) -> Statement:
    """The month's statement."""
    agreed = replace(USD, **terms)
    period = month(label, zone)
    return settle(Stays.of(stays), nodes, period=period, zone=zone, book=PriceBook(prices), terms=agreed)


def total(rows: Sequence[Row]) -> str:
    """The list cost of some rows."""
    return str(rolled_up(rows, ())[0].list_cost)


def priced_lines(held: Stay, *prices: Price) -> list[Json]:
    """GPU-hours, price and cost of a stay, line by line."""
    days = cut(Window(start_ms=held.start_ms, end_ms=held.end_ms or 0), UTC, Unit.DAY)
    lines, _ = usage_lines(Stays.of([held]), Cutter.over(days, [], PriceBook(prices)))
    return [
        {
            "gpu_hours": Fraction(line.micro_gpu_ms, MICRO_GPU_MS_PER_GPU_HOUR),
            "usd_per_gpu_hour": str(line.price.listed),
            "cost_usd": str(USD.currency.round(Fraction(cost(line.micro_gpu_ms, line.price.listed)) / PARTS)),
        }
        for line in lines
    ]
