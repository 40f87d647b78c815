"""Numbers, instants and names as people read them. Rounding happens here and nowhere before."""

import re
from datetime import UTC, datetime

from domain import words as _words

_MINUTE = 60
_HOUR = 3600
_DAY = 86_400
_SECONDS_UNTIL = 10 * _MINUTE
_DAYS_FROM = 2 * _DAY
_LEAST_HOURS = 0.01
_LEAST_SHARE = 0.005
_DIGITS = re.compile(r"([0-9]+)")
count = _words.count
UNDEFINED = "–"
NOT_KNOWN = "not known"
# Stands for the empty queue, on the page and in its address; no queue can have such a name.
NO_QUEUE = "(no queue)"

CLASS_NAMES = {
    "interactive": "interactive",
    "batch": "batch",
    "best_effort": "best-effort",
    "unclassified": "unclassified",
}
CLASSES = tuple(CLASS_NAMES)

UNIT_NAMES = {
    "seconds": "seconds, shown as h, m, s",
    "gpus": "GPUs",
    "gpu_hours": "GPU-hours",
    "workloads": "workloads",
    "total": "count",
    "ratio": "ratio, shown as percent",
    "per_second": "per second, shown as / s, / min or / h",
    "per_1000_gpu_hours": "per 1,000 GPU-hours",
    "permille": "per mille",
    "readings": "count",
    "money": "money, in the currency of the statement",
}


def duration(seconds: float | None) -> str:
    """
    A length of time in its two largest units; below ten minutes with its seconds.

    >>> [duration(s) for s in (0, 0.4, 45, 540, 2400, 8040, 180000)]
    ['0 s', '<1 s', '45 s', '9 m 0 s', '40 m', '2 h 14 m', '2 d 2 h']
    """
    if seconds is None:
        return UNDEFINED
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if 0 < seconds < 1:
        return "<1 s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _SECONDS_UNTIL:
        return f"{whole // _MINUTE} m {whole % _MINUTE} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} m"
    if whole < _DAYS_FROM:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} m"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def target(seconds: float) -> str:
    """
    A promised length of time, in the words of the promise.

    >>> [target(s) for s in (300, 3600, 86400, 90)]
    ['5 m', '60 m', '24 h', '1 m 30 s']
    """
    whole = round(seconds)
    if whole > _HOUR and whole % _HOUR == 0:
        return f"{whole // _HOUR} h"
    if whole % _MINUTE == 0:
        return f"{whole // _MINUTE} m"
    return duration(seconds)


def gpus(count: float | None) -> str:
    """
    A number of GPUs: whole where it is whole, else with at most three decimals.

    >>> [gpus(n) for n in (8, 0.142857, 1234.5, None)]
    ['8', '0.143', '1,234.5', '–']
    """
    if count is None:
        return UNDEFINED
    return f"{count:,.3f}".rstrip("0").rstrip(".")


def gpu_hours(hours: float) -> str:
    """
    GPU-hours: tenths, and hundredths below one.

    >>> [gpu_hours(h) for h in (0, 0.004, 0.25, 12.34, 12345.6)]
    ['0', '<0.01', '0.25', '12.3', '12,345.6']
    """
    if hours == 0:
        return "0"
    if 0 < hours < _LEAST_HOURS:
        return f"<{_LEAST_HOURS}"
    return f"{hours:.2f}" if abs(hours) < 1 else f"{hours:,.1f}"


def rate(per_second: float) -> str:
    """
    How often, by the shortest of second, minute and hour in which it happens at least once.

    >>> [rate(n) for n in (2.5, 0.05, 0.0001, 0)]
    ['2.5 / s', '3 / min', '0.36 / h', '0 / h']
    """
    for each, seconds in (("s", 1), ("min", 60)):
        if abs(per_second) * seconds >= 1:
            return f"{gpus(per_second * seconds)} / {each}"
    return f"{gpus(per_second * 3600)} / h"


def quantity(value: float | None, unit: str) -> str:
    """
    A value of a metric as text, without its unit where the unit is a count.

    >>> [quantity(0.973, "ratio"), quantity(540.0, "seconds"), quantity(3.0, "workloads")]
    ['97.3 %', '9 m 0 s', '3']
    >>> [quantity(1.7512, "times"), quantity(0.0001, "per_second")]
    ['1.75 x', '0.36 / h']
    >>> quantity(1234.5, "money")
    '1,234.50'
    """
    if value is None:
        return UNDEFINED
    if unit == "seconds":
        return duration(value)
    if unit == "ratio":
        return f"{100 * value:.1f} %"
    if unit == "times":
        return f"{gpus(round(value, 2))} x"
    if unit == "gpu_hours":
        return gpu_hours(value)
    if unit == "money":
        return f"{value:,.2f}"
    return rate(value) if unit == "per_second" else gpus(value)


def share(ratio: float, *, lower_bound: bool = False) -> str:
    """
    A part of a whole, in a sentence; of a lower bound that is too small to be written: more than nothing.

    >>> [share(ratio) for ratio in (0.0, 0.004, 0.47)]
    ['0 %', '<1 %', '47 %']
    >>> [share(ratio, lower_bound=True) for ratio in (0.004, 0.47)]
    ['> 0 %', '≥ 47 %']
    """
    if 0 < ratio < _LEAST_SHARE:
        return "> 0 %" if lower_bound else "<1 %"
    return f"{'≥ ' if lower_bound else ''}{100 * ratio:.0f} %"


def bounded(value: float | None, unit: str, *, lower_bound: bool = False, few: bool = False) -> str:
    """
    A value with what limits it: `≥` for a lower bound, `(few)` where it rests on fewer than five.

    A lower bound of nothing is not known; one that is too small to be written is more than nothing.

    >>> bounded(8040.0, "seconds", lower_bound=True, few=True)
    '≥ 2 h 14 m (few)'
    >>> [bounded(value, "ratio", lower_bound=True) for value in (0.0, 0.0001)]
    ['not known', '> 0 %']
    """
    if value is None:
        return UNDEFINED
    if lower_bound and not value:
        return NOT_KNOWN
    if lower_bound and unit == "ratio" and quantity(value, unit) == quantity(0.0, unit):
        return "> 0 %"
    return f"{'≥ ' if lower_bound else ''}{quantity(value, unit)}{' (few)' if few else ''}"


def parse_instant(text: str) -> datetime:
    """An RFC 3339 text as an aware UTC instant."""
    return datetime.fromisoformat(text).astimezone(UTC)


def instant(at: datetime | None) -> str:
    """
    Day and second, always in UTC and always saying so.

    >>> instant(parse_instant("2026-10-25T02:30:00+02:00"))
    '2026-10-25 00:30:00 UTC'
    """
    return UNDEFINED if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def age(at: datetime, now: datetime) -> str:
    """How fresh a figure is: `as of 22:41:03 UTC, 12 s ago`, with the day when it is not today's."""
    same_day = at.astimezone(UTC).date() == now.astimezone(UTC).date()
    shown = at.astimezone(UTC).strftime("%H:%M:%S UTC") if same_day else instant(at)
    seconds = (now - at).total_seconds()
    return f"as of {shown}, {duration(max(0.0, round(seconds)))} ago"


def natural(*names: str) -> tuple[object, ...]:
    """
    The key by which people order names: a number in them by its value.

    >>> sorted(["gpu-10", "gpu-9", "gpu-09a", "cpu"], key=natural)
    ['cpu', 'gpu-9', 'gpu-09a', 'gpu-10']
    """
    return tuple(_in_parts(name) for name in names), names


def _in_parts(name: str) -> tuple[str | tuple[int, str], ...]:
    # Words and numbers take turns, so that each is compared with its like. How long a number is tells more
    # than what it begins with.
    parts = _DIGITS.split(name)
    numbers = (digits.lstrip("0") for digits in parts[1::2])
    keys = [(len(number), number) for number in numbers]
    return tuple(key for pair in zip(parts[::2], [*keys, (0, "")], strict=True) for key in pair)


def class_name(service_class: str) -> str:
    """A service class as people write it."""
    return CLASS_NAMES.get(service_class, service_class)


def literal(sentence: str) -> str:
    """A sentence in which no letter acts as markup: names come from the cluster."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>$:#~|" else letter for letter in sentence)


def words(code: str) -> str:
    """
    A reason or cause from the machine, readable and still recognisable.

    >>> words("pods_ready_timeout"), words("Inadmissible")
    ('pods ready timeout', 'Inadmissible')
    """
    return code.replace("_", " ")
