"""A line of a statement as a FOCUS charge: its periods, its origin, and its part of that."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from typing import Final
from urllib.parse import quote

from analytics.chargeback.capacity import Kind
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from domain.calendar import Unit, billing_zone, cut, month
from domain.window import Window

RATIO_DIGITS: Final = 12
_TEAMS: Final = frozenset({Kind.HELD, Kind.IDLE_SHARE, Kind.UNAVAILABLE_SHARE})
# The GPU-time of a pool and day, and with what was held twice and is taken off.
_PARTS: Final = _TEAMS | {Kind.IDLE, Kind.UNAVAILABLE}
_KINDS: Final = _PARTS | {Kind.OVERLAP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """
    A line with its instants, milliseconds: when it was incurred, and in which period it is billed.

    `kind`, and the day of the charge, are those of the line that a correction is about. `origin` is empty
    where nothing was split; `ratio` is the part of the origin, None where that cannot be told. `allocated_to`
    is whose it is, as an id that is unique among the charges of an origin; empty for nobody's.
    """

    line: Line
    kind: str
    start_ms: int
    end_ms: int
    billing_start_ms: int
    billing_end_ms: int
    origin: str
    allocated_to: str
    ratio: Decimal | None

    @property
    def corrects(self) -> bool:
        """Whether it corrects a month that was closed."""
        return self.line.about is not None

    @property
    def is_usage(self) -> bool:
        """Whether it is GPU-time that was there to be used."""
        return self.kind in _PARTS


def charges(statement: MonthStatement) -> Iterator[Charge]:
    """
    The lines as charges, in their order.

    The ratios of an origin sum to exactly 1. They are parts of its effective cost, or of its GPU-time where
    it costs nothing. In a statement that was cut down to some teams they cannot be told.
    """
    days = cache(lambda label: _days(label, statement.zone_name))
    shares = _Shares(statement)
    for line in statement.lines:
        about = line.about
        kind = line.row.kind if about is None else about.kind
        day = line.row.day if about is None else about.day
        incurred = statement.month if about is None else about.month
        start_ms, end_ms = days(incurred)[day]
        origin = _origin(line, kind, day)
        yield Charge(
            line=line,
            kind=kind,
            start_ms=start_ms,
            end_ms=end_ms,
            billing_start_ms=statement.start_ms,
            billing_end_ms=statement.whole_end_ms,
            origin=origin,
            allocated_to=_owner(line, kind),
            ratio=shares.of(origin, line) if origin and about is None else None,
        )


def _days(label: str, zone_name: str) -> dict[str, tuple[int, int]]:
    """The bounds of a month's days; the empty name stands for the month."""
    zone = billing_zone(zone_name)
    whole = month(label, zone)
    window = Window(start_ms=whole.start_ms, end_ms=whole.end_ms)
    bounds = {day.label: (day.start_ms, day.end_ms) for day in cut(window, zone, Unit.DAY)}
    return bounds | {"": (whole.start_ms, whole.end_ms)}


def _owner(line: Line, kind: str) -> str:
    if kind not in _TEAMS:
        return ""
    row = line.row
    owner = "/".join(map(_quoted, (row.team, row.project, row.user, row.queue))).rstrip("/")
    return owner if kind == Kind.HELD else f"{owner}/{kind}"


def _origin(line: Line, kind: str, day: str) -> str:
    if kind not in _KINDS:
        return ""
    parts = (line.row.cluster, line.row.gpu_model, day, *(["overlap"] if kind == Kind.OVERLAP else []))
    return "/".join(map(_quoted, parts))


@lru_cache(maxsize=1 << 16)
def _quoted(part: str) -> str:
    return quote(part, safe="")


class _Shares:
    """Hands out each origin's parts in the lines' order: what was given so far, rounded, is at most 1."""

    def __init__(self, statement: MonthStatement) -> None:
        self._known = statement.hours is not None
        self._costs: dict[str, Decimal] = defaultdict(Decimal)
        self._times: dict[str, int] = defaultdict(int)
        self._given: dict[str, Fraction] = defaultdict(Fraction)
        for line in statement.lines:
            origin = _origin(line, line.row.kind, line.row.day)
            if origin and line.about is None:
                self._costs[origin] += line.row.effective_cost
                self._times[origin] += line.row.micro_gpu_ms

    def of(self, origin: str, line: Line) -> Decimal | None:
        if not self._known:
            return None
        if cost := self._costs[origin]:
            part = Fraction(line.row.effective_cost) / Fraction(cost)
        elif time := self._times[origin]:
            part = Fraction(line.row.micro_gpu_ms, time)
        else:
            return None
        before = self._given[origin]
        self._given[origin] = before + part
        return _rounded(before + part) - _rounded(before)


def _rounded(part: Fraction) -> Decimal:
    return Decimal(round(part * 10**RATIO_DIGITS)).scaleb(-RATIO_DIGITS)
