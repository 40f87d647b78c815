"""From stays and nodes to the statement of a month: all steps in their order."""

from collections.abc import Iterable
from datetime import tzinfo
from typing import Final

from analytics.chargeback.capacity import capacity_lines
from analytics.chargeback.cutter import Cutter
from analytics.chargeback.distribution import charges, distributed
from analytics.chargeback.extras import Extras, extra_charges
from analytics.chargeback.statement import Statement, Terms, statement
from analytics.chargeback.stays import NodeStretch, Stays
from analytics.chargeback.usage import usage_lines
from domain.calendar import Period, Unit, cut
from domain.money import PriceBook

_NONE: Final = Extras()


def settle(  # noqa: PLR0913 (all that a month is made of, named)
    stays: Stays,
    stretches: Iterable[NodeStretch],
    *,
    period: Period,
    zone: tzinfo,
    book: PriceBook,
    terms: Terms,
    extras: Extras = _NONE,
) -> Statement:
    """
    The statement of a period.

    Args:
        period: a month (`domain.calendar.month`), or the part of it that is over.
        extras: what is charged beside capacity.

    Raises:
        PolicyError: the price book has no price for something that was there.
    """
    days = cut(period.window, zone, Unit.DAY)
    cutter = Cutter.over(days, stretches, book)
    usage, not_held = usage_lines(stays, cutter)
    capacity, hours, not_there = capacity_lines(stays, cutter)
    found = charges(usage, capacity)
    found += extra_charges(found, extras, days, terms.distribution)
    return statement(
        distributed(found, terms.distribution),
        days=days,
        period=period,
        terms=terms,
        hours=hours,
        unknown=(*not_held, *not_there),
    )
