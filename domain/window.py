"""Instants and windows: aware UTC, half-open, stored as milliseconds since the epoch."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from domain.errors import UsageError

MS_PER_SECOND = 1000
MS_PER_MINUTE = 60 * MS_PER_SECOND
MS_PER_HOUR = 3_600_000
# Clocks differ; a stamp that is ahead of ours by more is wrong.
CLOCK_SKEW_MS = 60 * MS_PER_SECOND
_DAY_MS = 24 * MS_PER_HOUR
_LONGEST_DURATION_MS = 36_525 * _DAY_MS  # 100 years
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": MS_PER_HOUR, "d": _DAY_MS, "w": 7 * _DAY_MS}


def to_ms(instant: datetime) -> int:
    """
    Milliseconds since the epoch of an aware instant.

    >>> to_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000
    """
    if instant.tzinfo is None:
        message = f"{instant!r}: expected an instant with a time zone"
        raise UsageError(message)
    return (instant - _EPOCH) // timedelta(milliseconds=1)


_FIRST_MS = to_ms(datetime.min.replace(tzinfo=UTC))
_LAST_MS = to_ms(datetime.max.replace(tzinfo=UTC))
# The 11th of April 2262: nanoseconds since the epoch do not reach further, nor do 64 bits hold the GPU-time
# of one GPU until then. What tells of later is garbled.
LAST_KEPT_MS = ((1 << 63) - 1) // 1_000_000


def from_ms(at_ms: int) -> datetime:
    """The aware UTC instant of milliseconds since the epoch."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def minute_before(at_ms: int) -> int:
    """
    The last full minute before an instant.

    >>> minute_before(60_000), minute_before(60_001)
    (0, 60000)
    """
    return (at_ms - 1) // MS_PER_MINUTE * MS_PER_MINUTE


def is_instant(at_ms: int) -> bool:
    """Whether an instant lies in the years 1 to 2262; no other is kept."""
    return _FIRST_MS <= at_ms <= LAST_KEPT_MS


def instant_of_seconds(seconds: float) -> int | None:
    """
    Seconds since the epoch as an instant; None where they are none.

    >>> instant_of_seconds(1.5), instant_of_seconds(1e300), instant_of_seconds(float("nan"))
    (1500, None, None)
    """
    try:
        at_ms = round(seconds * MS_PER_SECOND)
    except (ValueError, OverflowError):
        return None
    return at_ms if is_instant(at_ms) else None


def parse_instant(text: str) -> int:
    """
    Milliseconds since the epoch of an RFC 3339 instant; the zone is required.

    >>> parse_instant("1970-01-01T01:00:00.5+01:00")
    500

    Raises:
        UsageError: the text is not RFC 3339, has no zone, or no calendar has that instant.
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as cause:
        message = f"instant {text!r}: expected RFC 3339, for example 2026-10-31T22:30:00Z"
        raise UsageError(message) from cause
    if instant.tzinfo is None:
        message = f"instant {text!r} has no zone: write 2026-10-31T22:30:00Z for UTC"
        raise UsageError(message)
    at_ms = to_ms(instant)
    if not _FIRST_MS <= at_ms <= _LAST_MS:
        message = f"instant {text!r}: in UTC it lies outside the years 1 to 9999"
        raise UsageError(message)
    return at_ms


def format_instant(at_ms: int) -> str:
    """
    RFC 3339 in UTC with milliseconds.

    >>> format_instant(500)
    '1970-01-01T00:00:00.500Z'
    """
    # strftime would leave out the zeros before an early year.
    return from_ms(at_ms).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_duration(text: str) -> timedelta:
    """
    A duration of 1 ms to 100 years: a number and a unit of ms, s, m, h, d or w, one or more times.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)

    Raises:
        UsageError: anything else, zero included.
    """
    parts = _DURATION.findall(text)
    total_ms = sum(float(number) * _UNIT_MS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        message = f"duration {text!r}: expected a number and a unit, for example 24h, 7d or 90m"
        raise UsageError(message)
    if not 1 <= total_ms <= _LONGEST_DURATION_MS:
        message = f"duration {text!r}: expected at least 1ms and at most 100 years (36525d)"
        raise UsageError(message)
    return timedelta(milliseconds=total_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The half-open interval `[start_ms, end_ms)`; `end_ms` is the `as_of` of the question."""

    start_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        if self.start_ms > self.end_ms:
            message = f"window [{self.start_ms}, {self.end_ms}): it ends before it starts"
            raise UsageError(message)

    @classmethod
    def before(cls, as_of_ms: int, length: timedelta) -> "Window":
        """
        The window of that length that ends at `as_of_ms`.

        Raises:
            UsageError: it begins before the year 1.
        """
        start_ms = as_of_ms - length // timedelta(milliseconds=1)
        if start_ms < _FIRST_MS:
            message = f"window of {length} before {format_instant(as_of_ms)}: it begins before the year 1"
            raise UsageError(message)
        return cls(start_ms=start_ms, end_ms=as_of_ms)

    @property
    def seconds(self) -> float:
        """Its length, seconds."""
        return (self.end_ms - self.start_ms) / MS_PER_SECOND


class Clock(Protocol):
    """Tells the time; a part that needs "now" is given one."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, now."""
        return to_ms(datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that does not move, for samples and tests."""

    at_ms: int

    def now_ms(self) -> int:
        """The instant that it was given."""
        return self.at_ms
