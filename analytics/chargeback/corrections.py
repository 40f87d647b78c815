"""
What later facts change in a closed month: the difference to what it said, row by row.

    closed + its corrections = the month settled anew, to the integer unit and to the cent

A late fact changes where cents fall in rows that it does not touch, for all of a month is rounded
together. Such cents are one line per team and kind, without a day; so GPU-time agrees row by row, and
money by team and kind.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

from analytics.chargeback.line import CORRECTION, About, Line
from analytics.chargeback.quota_lines import NOTES, QUOTA, QuotaTime
from analytics.chargeback.statement import COSTS, DIMENSIONS, Row
from domain.money import Currency

_TIME: Final = "micro_gpu_ms"
_CAUSE, _NOTE, _WORTH = "cause ", "note ", "worth "
_Key: TypeAlias = tuple[str, ...]
_Amounts: TypeAlias = dict[str, int]


def difference(now: Iterable[Line], before: Iterable[Line], currency: Currency) -> list[Line]:
    """
    The lines that turn what was said before into what is known now; none where nothing changed.

    Args:
        now: the month settled anew.
        before: as it was closed, and its corrections until now (lines with `about`).

    Returns:
        Lines with the day and the kind of the rows that they are about, in the order of their dimensions.
    """
    sums: dict[_Key, _Amounts] = defaultdict(lambda: defaultdict(int))
    prices: dict[_Key, set[str]] = defaultdict(set)
    for sign, lines in ((1, now), (-1, before)):
        for line in lines:
            key = _key(line)
            prices[key].update(line.row.prices)
            for name, amount in _amounts(line, currency):
                sums[key][name] += sign * amount
    moved: dict[_Key, _Amounts] = defaultdict(lambda: defaultdict(int))
    found: dict[_Key, _Amounts] = {}
    for key, amounts in sums.items():
        if any(amount for name, amount in amounts.items() if name not in COSTS):
            found[key] = amounts
        else:
            for name, amount in amounts.items():
                moved[_of_team_and_kind(key)][name] += amount
    found |= {key: amounts for key, amounts in moved.items() if any(amounts.values())}
    return [_line(key, found[key], tuple(sorted(prices[key])), currency) for key in sorted(found)]


def booked(lines: Iterable[Line], *, month: str, number: int, day: str) -> list[Line]:
    """
    Differences of a closed month as lines of the month that books them.

    Args:
        month: the closed one.
        number: of this correction of it.
        day: of the month that books them.
    """
    return [
        replace(
            line,
            row=replace(line.row, kind=CORRECTION, day=day),
            about=About(month=month, day=line.row.day, kind=line.row.kind, number=number),
        )
        for line in lines
    ]


def _key(line: Line) -> _Key:
    row: dict[str, str] = {name: getattr(line.row, name) for name in DIMENSIONS}
    if line.about is not None:
        row |= {"day": line.about.day, "kind": line.about.kind}
    return tuple(row.values())


def _of_team_and_kind(key: _Key) -> _Key:
    return tuple(
        value if name in {"team", "kind"} else "" for name, value in zip(DIMENSIONS, key, strict=True)
    )


def _amounts(line: Line, currency: Currency) -> Iterator[tuple[str, int]]:
    yield _TIME, line.row.micro_gpu_ms
    for name in COSTS:
        yield name, currency.units(getattr(line.row, name))
    for cause, amount in line.causes.items():
        yield _CAUSE + cause, amount
    if line.quota is not None:
        for name, amount in zip(NOTES, line.quota, strict=True):
            yield _NOTE + name, amount
        for name, worth in zip(NOTES, line.worth, strict=True):
            # What has no price is a note without an amount: nothing is owed for it.
            yield _WORTH + name, 0 if worth is None else currency.units(worth)


def _line(key: _Key, amounts: _Amounts, prices: tuple[str, ...], currency: Currency) -> Line:
    dimensions: dict[str, Any] = dict(zip(DIMENSIONS, key, strict=True))
    costs: dict[str, Any] = {name: currency.amount(amounts.get(name, 0)) for name in COSTS}
    causes = {
        name.removeprefix(_CAUSE): amount
        for name, amount in sorted(amounts.items())
        if name.startswith(_CAUSE) and amount
    }
    row = Row(**dimensions, **costs, micro_gpu_ms=amounts.get(_TIME, 0), prices=prices)
    if row.kind != QUOTA:
        return Line(row=row, causes=causes)
    return Line(
        row=row,
        causes=causes,
        quota=QuotaTime(*(amounts.get(_NOTE + name, 0) for name in NOTES)),
        worth=tuple(currency.amount(amounts.get(_WORTH + name, 0)) for name in NOTES),
    )
