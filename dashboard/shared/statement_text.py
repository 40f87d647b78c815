"""Figures of a statement as text."""

from decimal import Decimal
from typing import Final

from dashboard.shared import format as text

# Less is written as 0.0.
_LEAST_HOURS: Final = 0.05


def hours(value: float | None, *, at_least: bool = False) -> str:
    """
    GPU-hours.

    >>> hours(1234.56), hours(0.01, at_least=True)
    ('1,234.6', '> 0')
    """
    if value is None:
        return text.UNDEFINED
    if at_least and value < _LEAST_HOURS:
        return "> 0" if value else text.NOT_KNOWN
    return f"{'≥ ' if at_least else ''}{value:,.1f}"


def amount(value: str | float | None) -> str:
    """
    A cost as the API writes it, with all decimals of its currency; a price per hour with two.

    >>> amount("12345.60"), amount(2.499)
    ('12,345.60', '2.50')
    """
    if value is None:
        return text.UNDEFINED
    return f"{Decimal(value):,}" if isinstance(value, str) else f"{value:,.2f}"
