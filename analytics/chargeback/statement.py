"""
The statement: rows of team, project, user, queue, model and day that sum to the cent.

How it rounds. A day's amount is the rounded sum from the month's start to the day's end, less the
same until the day's start. So days sum to the month, the month is its exact sum rounded once (half
to even), and what happens on a later day never changes an earlier one. Within the day the amount
is apportioned to teams by largest remainder, and within the team to its rows; what one of them got
too much or too little is carried to its next day.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from operator import itemgetter
from typing import Final, TypeAlias

from analytics.chargeback.capacity import Hours, Kind
from analytics.chargeback.distribution import Charge, Distribution, Pool
from analytics.chargeback.usage import Unknown
from domain.calendar import Period
from domain.errors import UsageError
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, PARTS, Currency, Exact, Price, apportion

# Kinds whose time and costs are written positive in charges, and negative in rows.
TAKEN_OFF: Final = frozenset({Kind.OVERLAP, Kind.PREEMPTION_CREDIT})
# Money without GPU-time: no price of a pool.
_BESIDE: Final = frozenset({Kind.SHARED, Kind.PREEMPTION_CREDIT, Kind.PREEMPTION_CHARGE})
# Team, kind, cluster, project, user, queue, model: the team first, by which a day is split.
_Key: TypeAlias = tuple[str, ...]


class Billing(StrEnum):
    """Whether teams are shown what they cost, or pay it."""

    SHOWBACK = "showback"
    CHARGEBACK = "chargeback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """
    What a site agreed on: who is billed and how, and who bears idle capacity.

    In a chargeback what is billed is the effective cost; in a showback it is 0.
    """

    currency: Currency
    billing: Billing = Billing.SHOWBACK
    distribution: Distribution = field(default_factory=Distribution)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    A row of the statement; a dimension that does not apply, or is summed over, is empty.

    Costs have FOCUS' names and are in the statement's currency, at its minor unit. Time and costs
    of an overlap are negative. `prices` are references to the rows of the price book that it was priced by.
    """

    day: str = ""
    kind: str = ""
    cluster: str = ""
    team: str = ""
    project: str = ""
    user: str = ""
    queue: str = ""
    gpu_model: str = ""
    micro_gpu_ms: int = 0
    list_cost: Decimal
    contracted_cost: Decimal
    effective_cost: Decimal
    billed_cost: Decimal
    prices: tuple[str, ...] = ()

    @property
    def gpu_hours(self) -> Fraction:
        """GPU-hours, exactly."""
        return Fraction(self.micro_gpu_ms, MICRO_GPU_MS_PER_GPU_HOUR)


COSTS = ("list_cost", "contracted_cost", "effective_cost", "billed_cost")
DIMENSIONS = tuple(each.name for each in fields(Row) if each.name not in {*COSTS, "micro_gpu_ms", "prices"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """
    A month, or its days until now; `hours` is the books' sum, `unknown` what it cannot know.

    `average_prices`: what a micro-GPU-millisecond of a pool and day cost effectively, exactly, of all that
    was there, idle too. A pool without GPU-time has none. `exact_costs`: list, contracted and effective
    cost of all charges, summed exactly and rounded once: what rows must come to.
    """

    period: Period
    currency: Currency
    rows: tuple[Row, ...]
    hours: Hours
    unknown: tuple[Unknown, ...] = ()
    average_prices: Mapping[Pool, Fraction] = field(default_factory=dict)
    exact_costs: tuple[Decimal, ...] = ()

    def total(self) -> Row:
        """All rows in one."""
        whole = rolled_up(self.rows, ())
        zero = self.currency.amount(0)
        return (
            whole[0]
            if whole
            else Row(list_cost=zero, contracted_cost=zero, effective_cost=zero, billed_cost=zero)
        )


def statement(
    found: Iterable[Charge],
    *,
    days: Sequence[Period],
    period: Period,
    terms: Terms,
    hours: Mapping[str, Hours] | None = None,
    unknown: Iterable[Unknown] = (),
) -> Statement:
    """
    The rows of a month.

    Args:
        days: of the period, in order; charges of other days are not read.
        hours: the books' sum by day (`capacity_lines`).
    """
    by_day: dict[str, dict[_Key, _Exact]] = defaultdict(lambda: defaultdict(_Exact))
    for charge in found:
        by_day[charge.pool.day][_key(charge)].add(charge)
    rows: list[Row] = []
    make = _Rows(terms)
    # Where nobody agreed on another price than the list's, the three costs are one.
    costs = 1 if all(row.costs_are_one for rows in by_day.values() for row in rows.values()) else 3
    taken_off = tuple(_Rounding(terms.currency) for _ in range(costs))
    books = {-1: taken_off, 1: tuple(_Rounding(terms.currency, less) for less in taken_off)}
    for day in days:
        of_keys = sorted(by_day[day.label].items(), key=itemgetter(0))
        of_day: dict[int, list[Row]] = {}
        for sign, rounding in books.items():
            exact = {
                key: amounts for key, amounts in of_keys if (key[1] in TAKEN_OFF) == (sign < 0)
            }  # fmt: skip
            columns = [
                each.day({key: amounts.costs[place] for key, amounts in exact.items()})
                for place, each in enumerate(rounding)
            ]
            of_day[sign] = [
                make.row(
                    key,
                    [sign * column[key] for column in columns] * (3 // costs),
                    day=day.label, amounts=exact[key], sign=sign,
                )
                for key in exact
            ]  # fmt: skip
        rows += of_day[1] + of_day[-1]
    return Statement(
        period=period,
        currency=terms.currency,
        rows=tuple(rows),
        hours=sum((hours or {}).values(), Hours()),
        unknown=tuple(unknown),
        average_prices=_average_prices(by_day),
        exact_costs=_exact_costs(by_day, terms.currency, costs),
    )


def _exact_costs(
    by_day: Mapping[str, Mapping[_Key, "_Exact"]], currency: Currency, costs: int
) -> tuple[Decimal, ...]:
    """Of the three costs, of which only the first ones differ, what all rows come to."""

    def total(place: int) -> Exact:
        return sum(
            -amounts.costs[place] if key[1] in TAKEN_OFF else amounts.costs[place]
            for rows in by_day.values()
            for key, amounts in rows.items()
        )

    sums = [currency.round(Fraction(total(place)) / PARTS) for place in range(costs)]
    return tuple(sums * (3 // costs))


def _average_prices(by_day: Mapping[str, Mapping[_Key, "_Exact"]]) -> dict[Pool, Fraction]:
    found: dict[Pool, Fraction] = {}
    for day, rows in by_day.items():
        sums: dict[tuple[str, str], list[Exact]] = {}
        for (_, kind, cluster, *_, gpu_model), amounts in rows.items():
            if kind in _BESIDE:
                continue
            sign, of_pool = -1 if kind in TAKEN_OFF else 1, sums.setdefault((cluster, gpu_model), [0, 0])
            of_pool[0] += sign * amounts.micro_gpu_ms
            of_pool[1] += sign * amounts.costs[2]
        for (cluster, gpu_model), (time, cost) in sums.items():
            if time > 0:
                pool = Pool(cluster=cluster, gpu_model=gpu_model, day=day)
                found[pool] = Fraction(cost) / (PARTS * time)
    return found


def rolled_up(rows: Iterable[Row], by: Sequence[str]) -> list[Row]:
    """
    Rows summed over all dimensions but these, in the order of their values.

    Raises:
        UsageError: there is no such dimension.
    """
    for name in by:
        if name not in DIMENSIONS:
            message = f"dimension {name!r}: expected some of {', '.join(DIMENSIONS)}"
            raise UsageError(message)
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(getattr(row, name) for name in by)].append(row)
    return [
        Row(
            **dict(zip(by, key, strict=True)),
            micro_gpu_ms=sum(row.micro_gpu_ms for row in members),
            list_cost=sum((row.list_cost for row in members[1:]), members[0].list_cost),
            contracted_cost=sum((row.contracted_cost for row in members[1:]), members[0].contracted_cost),
            effective_cost=sum((row.effective_cost for row in members[1:]), members[0].effective_cost),
            billed_cost=sum((row.billed_cost for row in members[1:]), members[0].billed_cost),
            prices=tuple(sorted({each for row in members for each in row.prices})),
        )
        for key, members in sorted(groups.items())
    ]


class _Exact:
    """A row's exact sums: time, and list, contracted and effective cost in parts of a currency unit."""

    __slots__ = ("costs", "micro_gpu_ms", "prices")

    def __init__(self) -> None:
        self.micro_gpu_ms = 0
        self.prices: tuple[Price, ...] = ()
        self.costs: tuple[Exact, Exact, Exact] = (0, 0, 0)

    @property
    def costs_are_one(self) -> bool:
        """Whether the three costs are the same amount."""
        listed, contracted, effective = self.costs
        return listed == contracted == effective

    def add(self, charge: Charge) -> None:
        listed, contracted, effective = self.costs
        self.micro_gpu_ms += charge.micro_gpu_ms
        if charge.price is not None and charge.price not in self.prices:
            self.prices += (charge.price,)
        self.costs = (
            listed + charge.list_cost,
            contracted + charge.contracted_cost,
            effective + charge.effective_cost,
        )


class _Rounding:
    """
    One column's way through the days of a period: what was exact, and what was given.

    With what is taken off, whose day comes first, both together are the exact sum rounded once. What is taken
    off on a day is a part of that day's costs, so that no day is given less than nothing.
    """

    def __init__(self, currency: Currency, taken_off: "_Rounding | None" = None) -> None:
        self._currency = currency
        self._taken_off = taken_off
        self.exact: Exact = 0
        self.given = 0
        self._by_team: dict[_Key, Exact] = defaultdict(int)
        self._by_row: dict[_Key, Exact] = defaultdict(int)

    def day(self, costs: Mapping[_Key, Exact]) -> dict[_Key, int]:
        """The next day's rows, minor units, of costs in parts of a currency unit."""
        self.exact += sum(costs.values())
        before, self.given = self.given, self._minor()
        teams: dict[_Key, dict[_Key, Exact]] = defaultdict(dict)
        minor_units = 10**self._currency.digits
        for key, amount in costs.items():
            teams[key[:1]][key] = amount * minor_units
        sums: dict[_Key, Exact] = {team: sum(rows.values()) for team, rows in teams.items()}
        given = _carrying(self.given - before, sums, self._by_team)
        return {
            key: part
            for team, rows in teams.items()
            for key, part in _carrying(given[team], rows, self._by_row).items()
        }

    def _minor(self) -> int:
        if self._taken_off is None:
            return self._currency.minor(Fraction(self.exact) / PARTS)
        left = self.exact - self._taken_off.exact
        return self._currency.minor(Fraction(left) / PARTS) + self._taken_off.given


def _carrying(total: int, exact: Mapping[_Key, Exact], carried: dict[_Key, Exact]) -> dict[_Key, int]:
    parts = apportion(total, exact, carried, unit=PARTS)
    for name, part in parts.items():
        carried[name] += exact[name] - part * PARTS
    return parts


def _key(charge: Charge) -> _Key:
    owner, pool = charge.owner, charge.pool
    return owner.team, charge.kind, pool.cluster, owner.project, owner.user, owner.queue, pool.gpu_model


class _Rows:
    """Makes rows; those of the same prices have the references of these in common."""

    def __init__(self, terms: Terms) -> None:
        self._amount = terms.currency.amount
        self._billed = terms.billing is Billing.CHARGEBACK
        self._zero = terms.currency.amount(0)
        self._references: dict[tuple[Price, ...], _Key] = {}

    def row(self, key: _Key, minor: list[int], *, day: str, amounts: _Exact, sign: int) -> Row:
        team, kind, cluster, project, user, queue, gpu_model = key
        listed = contracted = effective = self._amount(minor[0])
        if not minor[0] == minor[1] == minor[2]:
            contracted, effective = map(self._amount, minor[1:])
        prices = self._references.get(amounts.prices)
        if prices is None:
            prices = tuple(sorted(price.reference for price in amounts.prices))
            self._references[amounts.prices] = prices
        return Row(
            day=day,
            micro_gpu_ms=sign * amounts.micro_gpu_ms,
            kind=kind,
            cluster=cluster,
            team=team,
            project=project,
            user=user,
            queue=queue,
            gpu_model=gpu_model,
            list_cost=listed,
            contracted_cost=contracted,
            effective_cost=effective,
            billed_cost=effective if self._billed else self._zero,
            prices=prices,
        )
