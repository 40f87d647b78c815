"""Laws of corrections: what was closed and what was learnt of it is what is known now."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.chargeback.canonical import decode_lines, encode_lines
from analytics.chargeback.capacity import Kind
from analytics.chargeback.corrections import booked, difference
from analytics.chargeback.line import Line
from analytics.chargeback.settle import settle
from analytics.chargeback.statement import COSTS, Billing, Terms
from analytics.chargeback.stays import Stays
from domain.calendar import Period
from domain.money import Currency, PriceBook
from tests.analytics.chargeback.test_chargeback import node, settled, stay
from tests.analytics.chargeback.worlds import WINDOW, ZONES, World, worlds

CURRENCIES = [Currency(code="XXX", digits=digits) for digits in (0, 2, 3)]


def lines(world: World, known: int, currency: Currency) -> list[Line]:
    """The month with only so many of the world's stays known; a third of what is held counts as idle."""
    found = settle(
        Stays.of(world.stays[:known]), world.stretches,
        period=Period(label="2026-10", start_ms=WINDOW.start_ms, end_ms=WINDOW.end_ms), zone=ZONES[1],
        book=PriceBook(world.prices), terms=Terms(currency=currency, billing=Billing.CHARGEBACK),
    )  # fmt: skip
    return [
        Line(
            row=row,
            causes={"idle": row.micro_gpu_ms // 3, "useful": row.micro_gpu_ms - row.micro_gpu_ms // 3},
        )
        if row.kind == Kind.HELD
        else Line(row=row, causes={})
        for row in found.rows
    ]


def units(found: Iterable[Line]) -> dict[tuple[str, ...], dict[str, int]]:
    """GPU-time and causes by the row that a line is about; 0 is left out."""
    sums: dict[tuple[str, ...], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for line in found:
        row = line.row
        day, kind = (row.day, row.kind) if line.about is None else (line.about.day, line.about.kind)
        of_row = sums[day, kind, row.cluster, row.team, row.project, row.user, row.queue, row.gpu_model]
        of_row["time"] += row.micro_gpu_ms
        for cause, amount in line.causes.items():
            of_row[cause] += amount
    kept = {key: {name: amount for name, amount in each.items() if amount} for key, each in sums.items()}
    return {key: each for key, each in kept.items() if each}


def cents(found: Iterable[Line], currency: Currency) -> dict[tuple[str, str, str], int]:
    """Costs by team and kind in minor units; 0 is left out."""
    sums: dict[tuple[str, str, str], int] = defaultdict(int)
    for line in found:
        kind = line.row.kind if line.about is None else line.about.kind
        for cost in COSTS:
            sums[line.row.team, kind, cost] += currency.units(getattr(line.row, cost))
    return {key: amount for key, amount in sums.items() if amount}


def chain(world: World, steps: Sequence[int], currency: Currency) -> list[Line]:
    """Closed at the first step, and corrected at each later one."""
    said = lines(world, steps[0], currency)
    for number, known in enumerate(steps[1:], start=1):
        found = difference(lines(world, known, currency), said, currency)
        kept = decode_lines(encode_lines(found))
        assert list(kept) == found
        said += booked(kept, month="2026-10", number=number, day="2026-11-03")
    return said


@settings(max_examples=15)
@given(worlds(), st.lists(st.integers(0, 6), min_size=2, max_size=4), st.sampled_from(CURRENCIES))
def test_closed_and_its_corrections_are_the_month_settled_anew(
    world: World, steps: list[int], currency: Currency
) -> None:
    now, said = lines(world, steps[-1], currency), chain(world, steps, currency)
    assert units(said) == units(now)
    assert cents(said, currency) == cents(now, currency)
    assert difference(now, said, currency) == []


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(worlds(), st.lists(st.integers(0, 12), min_size=2, max_size=6), st.sampled_from(CURRENCIES))
def test_long_chains_of_corrections_balance_too(world: World, steps: list[int], currency: Currency) -> None:
    now, said = lines(world, steps[-1], currency), chain(world, steps, currency)
    assert (units(said), cents(said, currency)) == (units(now), cents(now, currency))


def test_cents_that_only_moved_are_one_line_of_their_team_and_kind() -> None:
    currency = CURRENCIES[1]
    held = [stay("ash", 1, 0, 5), stay("birch", 1, 5, 9)]
    before = [Line(row=row, causes={}) for row in settled(held, [node(0, 24)]).rows]
    cent = currency.amount(1)
    moved = [
        replace(line, row=replace(line.row, list_cost=line.row.list_cost + cent))
        if line.row.team == "ash"
        else line
        for line in before
    ]
    [found] = difference(moved, before, currency)
    assert (found.row.team, found.row.kind, found.row.day, found.row.gpu_model) == ("ash", "held", "", "")
    assert (found.row.list_cost, found.row.micro_gpu_ms) == (cent, 0)
