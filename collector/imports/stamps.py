"""Time stamps and lengths as tables of jobs write them."""

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from domain.errors import UsageError
from domain.window import LAST_KEPT_MS, MS_PER_SECOND, to_ms

# What Slurm and spreadsheets write where there is no instant.
NO_INSTANT: Final = frozenset({"", "unknown", "none", "n/a", "na", "null", "nan", "nat", "invalid"})
_LENGTH: Final = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,7}):)?(\d{1,7}):(\d{1,2})(?:\.\d+)?")
_NUMBER: Final = re.compile(r"[+-]?\d{1,16}(\.\d{1,9})?")
# Years 1900 to 2262: what lies outside is a number of something else.
_FIRST_MS: Final = to_ms(datetime(1900, 1, 1, tzinfo=UTC))


def zone_of(name: str) -> ZoneInfo:
    """
    A time zone by its name.

    Raises:
        UsageError: there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as cause:
        message = f"zone {name!r}: expected a name of the time zone database, for example Europe/Berlin"
        raise UsageError(message) from cause


@lru_cache(maxsize=1 << 16)
def instant_ms(text: str, zone: ZoneInfo, *, later: bool = False) -> int | None:
    """
    Milliseconds since the epoch of a stamp; None where it says that there is none.

    A stamp is ISO 8601, in `zone` unless it has its own, or a number of seconds since the epoch. An
    hour that the clock shows twice is the earlier one, or the later one where `later` says so.

    >>> instant_ms("2026-10-25T02:30:00", ZoneInfo("Europe/Berlin"))
    1792888200000
    >>> instant_ms("2026-10-25T02:30:00", ZoneInfo("Europe/Berlin"), later=True)
    1792891800000

    Raises:
        ValueError: it is no stamp.
    """
    text = text.strip()
    if text.lower() in NO_INSTANT:
        return None
    if _NUMBER.fullmatch(text):
        return epoch_ms(float(text), scale=MS_PER_SECOND)
    try:
        read = datetime.fromisoformat(text)
        at_ms = to_ms(read.replace(tzinfo=zone, fold=int(later)) if read.tzinfo is None else read)
    except (ValueError, OverflowError) as cause:
        message = f"stamp {text[:40]!r}: expected one like 2026-10-31T22:30:00"
        raise ValueError(message) from cause
    return _within(at_ms, text)


def epoch_ms(number: float, *, scale: float, origin_ms: int = 0) -> int:
    """
    Milliseconds since the epoch of a number of units since `origin_ms`; `scale` is a unit in ms.

    Raises:
        ValueError: no calendar of ours has that instant.
    """
    if not math.isfinite(number):
        message = f"stamp {number}: expected a finite number"
        raise ValueError(message)
    return _within(origin_ms + round(number * scale), f"{number:g}")


def length_seconds(text: str) -> float | None:
    """
    Seconds of a length: `[D-]HH:MM:SS`, `MM:SS`, or a number of seconds; None where it is none.

    >>> length_seconds("10-13:27:06"), length_seconds("02:30"), length_seconds("Partition_Limit")
    (912426.0, 150.0, None)
    """
    # `float` refuses some of the spaces that `strip` takes away.
    text = text.strip()
    found = _LENGTH.fullmatch(text)
    if found is None:
        return float(text) if _NUMBER.fullmatch(text) else None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()


def _within(at_ms: int, text: str) -> int:
    if not _FIRST_MS <= at_ms <= LAST_KEPT_MS:
        message = f"stamp {text[:40]!r}: expected an instant of the years 1900 to 2262"
        raise ValueError(message)
    return at_ms
