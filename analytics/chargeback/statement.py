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
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from analytics.chargeback.capacity import Hours, Kind
from analytics.chargeback.distribution import Charge, Distribution
from analytics.chargeback.usage import Unknown
from domain.calendar import Period
from domain.errors import UsageError
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, Currency, apportion


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
    of an overlap are negative.
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

    @property
    def gpu_hours(self) -> Fraction:
        """GPU-hours, exactly."""
        return Fraction(self.micro_gpu_ms, MICRO_GPU_MS_PER_GPU_HOUR)


COSTS = ("list_cost", "contracted_cost", "effective_cost", "billed_cost")
DIMENSIONS = tuple(each.name for each in fields(Row) if each.name not in {*COSTS, "micro_gpu_ms"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A month, or its days until now; `hours` is the books' sum, `unknown` what it cannot know."""

    period: Period
    currency: Currency
    rows: tuple[Row, ...]
    hours: Hours
    unknown: tuple[Unknown, ...] = ()

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
    by_day: dict[str, dict[tuple[str, ...], _Exact]] = defaultdict(lambda: defaultdict(_Exact))
    for charge in found:
        by_day[charge.pool.day][_key(charge)].add(charge)
    rows: list[Row] = []
    books = {sign: tuple(_Rounding(terms.currency) for _ in range(3)) for sign in (1, -1)}
    for day in days:
        for sign, rounding in books.items():
            exact = {
                key: amounts for key, amounts in by_day[day.label].items()
                if (key[1] == Kind.OVERLAP) == (sign < 0)
            }  # fmt: skip
            columns = [
                each.day({key: amounts.costs[place] for key, amounts in exact.items()})
                for place, each in enumerate(rounding)
            ]
            for key in sorted(exact):
                minor = [sign * column[key] for column in columns]
                row = _row(key, minor, terms)
                rows.append(replace(row, day=day.label, micro_gpu_ms=sign * exact[key].micro_gpu_ms))
    return Statement(
        period=period,
        currency=terms.currency,
        rows=tuple(rows),
        hours=sum((hours or {}).values(), Hours()),
        unknown=tuple(unknown),
    )


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
        )
        for key, members in sorted(groups.items())
    ]


class _Exact:
    """A row's exact sums: time, and list, contracted and effective cost in currency units."""

    __slots__ = ("costs", "micro_gpu_ms")

    def __init__(self) -> None:
        self.micro_gpu_ms = 0
        self.costs = (Fraction(), Fraction(), Fraction())

    def add(self, charge: Charge) -> None:
        listed, contracted, effective = self.costs
        self.micro_gpu_ms += charge.micro_gpu_ms
        self.costs = (
            listed + charge.list_cost,
            contracted + charge.contracted_cost,
            effective + charge.effective_cost,
        )


class _Rounding:
    """One column's way through the days of a period: what was exact, and what was given."""

    def __init__(self, currency: Currency) -> None:
        self._currency = currency
        self._exact = Fraction()
        self._by_team: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
        self._by_row: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)

    def day(self, costs: Mapping[tuple[str, ...], Fraction]) -> dict[tuple[str, ...], int]:
        """The next day's rows, minor units."""
        before = self._currency.minor(self._exact)
        self._exact += sum(costs.values())
        teams: dict[tuple[str, ...], dict[tuple[str, ...], Fraction]] = defaultdict(dict)
        for key, amount in costs.items():
            teams[key[:1]][key] = amount * 10**self._currency.digits
        sums = {team: Fraction(sum(rows.values())) for team, rows in teams.items()}
        given = _carrying(self._currency.minor(self._exact) - before, sums, self._by_team)
        return {
            key: part
            for team, rows in teams.items()
            for key, part in _carrying(given[team], rows, self._by_row).items()
        }


def _carrying(
    total: int, exact: Mapping[tuple[str, ...], Fraction], carried: dict[tuple[str, ...], Fraction]
) -> dict[tuple[str, ...], int]:
    parts = apportion(total, exact, carried)
    for name, part in parts.items():
        carried[name] += exact[name] - part
    return parts


def _key(charge: Charge) -> tuple[str, ...]:
    """Team, kind, cluster, project, user, queue, model: the team first, by which a day is split."""
    owner = charge.owner
    return (
        owner.team,
        charge.kind,
        charge.pool.cluster,
        owner.project,
        owner.user,
        owner.queue,
        charge.pool.gpu_model,
    )


def _row(key: tuple[str, ...], minor: list[int], terms: Terms) -> Row:
    team, kind, cluster, project, user, queue, gpu_model = key
    listed, contracted, effective = (terms.currency.amount(amount) for amount in minor)
    return Row(
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
        billed_cost=effective if terms.billing is Billing.CHARGEBACK else terms.currency.amount(0),
    )
