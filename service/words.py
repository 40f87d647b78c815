"""Figures as people read them; rounding happens here and nowhere earlier."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

_STEPS = (("d", 86_400), ("h", 3_600), ("m", 60))


def duration(seconds: float | None) -> str:
    """
    The two largest units of a duration.

    >>> duration(8040), duration(59.5), duration(0), duration(None)
    ('2 h 14 m', '59.5 s', '0 s', '-')
    """
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    units = (*_STEPS, ("s", 1))
    for (unit, size), (next_unit, next_size) in pairwise(units):
        if whole >= size:
            rest = whole % size // next_size
            return f"{whole // size} {unit} {rest} {next_unit}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def number(value: float | None) -> str:
    """
    A plain number, at most three decimals.

    >>> number(8.0), number(0.33333), number(None)
    ('8', '0.333', '-')
    """
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def amount(value: float, unit: str) -> str:
    """
    A value in its unit, as a column of that unit shows it.

    >>> amount(3600.0, "seconds"), amount(0.0001, "per_second"), amount(1.7512, "times"), amount(8.0, "gpus")
    ('1 h', '0.36 / h', '1.75 x', '8')
    """
    if unit == "seconds":
        return duration(value)
    if unit == "times":
        return f"{number(round(value, 2))} x"
    return rate(value) if unit == "per_second" else number(value)


def rate(per_second: float) -> str:
    """
    How often, by the shortest of second, minute and hour in which it happens at least once.

    >>> rate(2.5), rate(0.05), rate(0.0001), rate(0.0)
    ('2.5 / s', '3 / min', '0.36 / h', '0 / h')
    """
    for each, seconds in (("s", 1), ("min", 60)):
        if abs(per_second) * seconds >= 1:
            return f"{number(per_second * seconds)} / {each}"
    return f"{number(per_second * 3600)} / h"


def figure(row: dict[str, Any], unit: str) -> str:
    """
    A metric's value with its marks; where there is none, the reason.

    >>> figure({"value": 3600.0, "lower_bound": True, "few": True}, "seconds")
    '>= 1 h *'
    """
    if row["value"] is None:
        return f"undefined: {row['undefined_because']}"
    text = at_least(row["value"], amount(row["value"], unit), bound=row["lower_bound"])
    return f"{text}{' *' if row['few'] else ''}"


def at_least(value: float | Decimal | None, text: str, *, bound: bool) -> str:
    """
    A figure's text where the figure may be a lower bound; one of nothing is not known.

    >>> at_least(2.0, "2", bound=True), at_least(0.0, "0", bound=True), at_least(None, "-", bound=True)
    ('>= 2', 'not known', '-')
    """
    if not bound or value is None:
        return text
    return f">= {text}" if value else "not known"


def instant(text: str | None) -> str:
    """
    To the second, as a column shows it.

    >>> instant("2026-11-01T08:00:00.500Z"), instant(None)
    ('2026-11-01 08:00:00', '-')
    """
    return "-" if text is None else text[:19].replace("T", " ")
