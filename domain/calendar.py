"""
The billing calendar: days, weeks and months as they begin and end in the billing zone.

`cut` is the only place where time is cut into days, weeks or months. A day of a clock change has 23 or 25
hours, and its month 743 or 745.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from domain.errors import UsageError
from domain.window import MS_PER_HOUR, Window, from_ms, to_ms


class Unit(StrEnum):
    """What time is cut into."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A day `2026-10-25`, a week `2026-W43` or a month `2026-10`, or the part of it that was asked for."""

    label: str
    start_ms: int
    end_ms: int

    @property
    def window(self) -> Window:
        """The same as a window."""
        return Window(start_ms=self.start_ms, end_ms=self.end_ms)

    @property
    def hours(self) -> float:
        """Its length, hours: 23 or 25 where the clock changes on a day."""
        return (self.end_ms - self.start_ms) / MS_PER_HOUR


def billing_zone(name: str) -> ZoneInfo:
    """
    The zone of that IANA name.

    Raises:
        UsageError: there is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as cause:
        message = f"time zone {name!r}: expected an IANA name, for example Europe/Berlin or UTC"
        raise UsageError(message) from cause


def cut(window: Window, zone: tzinfo, unit: Unit) -> list[Period]:
    """
    The days, weeks or months of a window, in order; the first and the last may be parts.

    A day begins at the first instant of its date: where midnight comes twice, with the first, and
    where the clock skips midnight, with the change. A date that a zone skipped whole is left out.

    >>> berlin, night = billing_zone("Europe/Berlin"), to_ms(datetime.fromisoformat("2026-10-24T22:00Z"))
    >>> days = cut(Window(start_ms=night, end_ms=night + 49 * MS_PER_HOUR), berlin, Unit.DAY)
    >>> [(day.label, day.hours) for day in days]
    [('2026-10-25', 25.0), ('2026-10-26', 24.0)]
    """
    day = _first_of(from_ms(window.start_ms).astimezone(zone).date(), unit)
    start_ms, periods = window.start_ms, list[Period]()
    while start_ms < window.end_ms:
        following = _following(day, unit)
        end_ms = min(_midnight_ms(following, zone), window.end_ms)
        if end_ms > start_ms:
            periods.append(Period(label=_label(day, unit), start_ms=start_ms, end_ms=end_ms))
        day, start_ms = following, max(end_ms, start_ms)
    return periods


def month(text: str, zone: tzinfo) -> Period:
    """
    The whole month of that name, `2026-10`.

    Raises:
        UsageError: the text is not a month.
    """
    try:
        first = date.fromisoformat(f"{text}-01")
        following = _following(first, Unit.MONTH)
        whole = Window(start_ms=_midnight_ms(first, zone), end_ms=_midnight_ms(following, zone))
        (found,) = cut(whole, zone, Unit.MONTH)
    except (ValueError, OverflowError) as cause:
        message = f"month {text!r}: expected year and month, for example 2026-10"
        raise UsageError(message) from cause
    return found


def week(text: str, zone: tzinfo) -> Period:
    """
    The whole ISO week of that name, `2026-W48`: Monday to Monday.

    Raises:
        UsageError: the text is not a week.
    """
    try:
        first = date.fromisoformat(f"{text}-1")
        whole = Window(
            start_ms=_midnight_ms(first, zone), end_ms=_midnight_ms(_following(first, Unit.WEEK), zone)
        )
        (found,) = cut(whole, zone, Unit.WEEK)
    except (ValueError, OverflowError) as cause:
        message = f"week {text!r}: expected an ISO week, for example 2026-W48"
        raise UsageError(message) from cause
    return found


def finished_week(as_of_ms: int, zone: tzinfo) -> Period:
    """
    The last whole ISO week that is over at that instant.

    >>> finished_week(to_ms(datetime.fromisoformat("2026-11-01T23:00Z")), billing_zone("Europe/Berlin")).label
    '2026-W44'
    """
    monday = _first_of(from_ms(as_of_ms).astimezone(zone).date(), Unit.WEEK)
    return week(_label(monday - timedelta(days=7), Unit.WEEK), zone)


def running(as_of_ms: int, zone: tzinfo, unit: Unit) -> Period:
    """
    The whole day, week or month that goes on just before an instant: at its end it is not over yet.

    >>> night = to_ms(datetime.fromisoformat("2026-10-31T23:00Z"))
    >>> running(night, billing_zone("Europe/Berlin"), Unit.MONTH).label
    '2026-10'
    """
    first = _first_of(from_ms(as_of_ms - 1).astimezone(zone).date(), unit)
    return Period(
        label=_label(first, unit),
        start_ms=_midnight_ms(first, zone),
        end_ms=_midnight_ms(_following(first, unit), zone),
    )


def _label(day: date, unit: Unit) -> str:
    match unit:
        case Unit.DAY:
            return day.isoformat()
        case Unit.WEEK:
            year, number, _ = day.isocalendar()
            return f"{year}-W{number:02d}"
        case _:
            return day.isoformat()[:7]


def _first_of(day: date, unit: Unit) -> date:
    match unit:
        case Unit.DAY:
            return day
        case Unit.WEEK:
            return day - timedelta(days=day.weekday())
        case _:
            return day.replace(day=1)


def _following(day: date, unit: Unit) -> date:
    if unit is not Unit.MONTH:
        return day + timedelta(days=1 if unit is Unit.DAY else 7)
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)


def _midnight_ms(day: date, zone: tzinfo) -> int:
    # fold=0: of two midnights the first; a midnight inside a gap is read with the offset before
    # the change (PEP 495), which is the instant of the change.
    return to_ms(datetime(day.year, day.month, day.day, tzinfo=zone))
