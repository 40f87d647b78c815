"""The sums of a month by team, exact: what the sheet `summary` of the workbook holds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.quota_lines import NOTES
from analytics.chargeback.statement import COSTS
from analytics.wastage.causes import Cause
from api.exports.detail import Of, amount_of, noted, unattributed
from api.exports.gpu_hours import DIGITS, gpu_hours
from api.exports.table import Column, Kind, Row, Table, Value
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR

TOTAL: Final = "total"
_USEFUL_OR_UNKNOWN: Final = frozenset({Cause.USEFUL, Cause.UNKNOWN})


def by_team(statement: MonthStatement) -> Table:
    """A row per team, and the total last."""
    of = Of(statement)
    groups: dict[str, list[Line]] = defaultdict(list)
    for line in statement.lines:
        groups[line.row.team].append(line)
    # What is nobody's comes after the teams.
    names = sorted(groups, key=lambda team: (team.startswith("__"), team))
    rows = [_row(team, groups[team], of) for team in names]
    return Table(columns=_columns(statement), rows=[*rows, _row(TOTAL, statement.lines, of)])


def by_kind(statement: MonthStatement) -> Table:
    """From the kinds of lines to the invoice: a row per kind, and their sum last."""
    groups: dict[str, list[Line]] = defaultdict(list)
    for line in statement.lines:
        groups[line.row.kind].append(line)
    of = Of(statement)
    columns = [Column(name="lines"), _hours("gpu_hours"), *_costs(statement)]
    rows: list[Row] = [
        (kind, gpu_hours(_time(members)), *_money(members, of)) for kind, members in sorted(groups.items())
    ]
    rows.append(("= the invoice", gpu_hours(_time(statement.lines)), *_money(statement.lines, of)))
    return Table(columns=columns, rows=rows)


def _columns(statement: MonthStatement) -> list[Column]:
    digits = statement.currency.digits
    return [
        Column(name="team"),
        Column(name="cost_centre"),
        _hours("gpu_hours"),
        _hours("held_gpu_hours"),
        _hours("useful_gpu_hours"),
        _hours("not_useful_gpu_hours"),
        _hours("unattributed_gpu_hours"),
        *_costs(statement),
        Column(name="of_it_corrections", kind=Kind.DECIMAL, digits=digits),
        *(_hours(f"{name}_gpu_hours") for name in NOTES),
        Column(name="cost_per_useful_gpu_hour", kind=Kind.DECIMAL, digits=4),
    ]


def _row(team: str, lines: Sequence[Line], of: Of) -> Row:
    causes: Counter[str] = Counter()
    known = [told for line in lines if (told := of.causes(line)) is not None]
    for found in known:
        causes.update(found)
    useful = amount_of(Cause.USEFUL, causes) if known else None
    not_useful = sum(amount for cause, amount in causes.items() if cause not in _USEFUL_OR_UNKNOWN)
    nobody_knows = [each for line in lines if (each := unattributed(line, of)) is not None]
    costs = _money(lines, of)
    corrections = [line.row.effective_cost for line in lines if line.about is not None]
    return (
        team,
        of.statement.cost_centres.get(team) or None,
        gpu_hours(_time(lines)),
        gpu_hours(_time(line for line in lines if line.is_held)),
        gpu_hours(useful),
        gpu_hours(not_useful if known else None),
        gpu_hours(sum(nobody_knows) if nobody_knows else None),
        *costs,
        sum(corrections, of.statement.currency.amount(0)) if of.priced else None,
        *(gpu_hours(_noted(lines, of, place)) for place in range(len(NOTES))),
        _unit_cost(lines, of, useful),
    )


def _noted(lines: Iterable[Line], of: Of, place: int) -> int | None:
    amounts = [amount for line in lines if (amount := noted(place)(line, of)) is not None]
    return sum(amounts) if amounts else None


def _time(lines: Iterable[Line]) -> int:
    return sum(line.row.micro_gpu_ms for line in lines)


def _money(lines: Sequence[Line], of: Of) -> list[Value]:
    zero = of.statement.currency.amount(0)
    return [sum((getattr(line.row, name) for line in lines), zero) if of.priced else None for name in COSTS]


def _unit_cost(lines: Sequence[Line], of: Of, useful: int | None) -> Decimal | None:
    if not of.priced or not useful:
        return None
    cost = Fraction(sum((line.row.effective_cost for line in lines), Decimal(0)))
    return Decimal(round(cost * MICRO_GPU_MS_PER_GPU_HOUR / useful * 10_000)).scaleb(-4)


def _hours(name: str) -> Column:
    return Column(name=name, kind=Kind.HOURS, digits=DIGITS)


def _costs(statement: MonthStatement) -> list[Column]:
    return [Column(name=name, kind=Kind.DECIMAL, digits=statement.currency.digits) for name in COSTS]
