"""From stays and nodes to the statement of a month: all steps in their order."""

from collections.abc import Iterable
from datetime import tzinfo

from analytics.chargeback.capacity import capacity_lines
from analytics.chargeback.cutter import Cutter
from analytics.chargeback.distribution import charges, distributed
from analytics.chargeback.statement import Statement, Terms, statement
from analytics.chargeback.stays import NodeStretch, Stays
from analytics.chargeback.usage import usage_lines
from domain.calendar import Period, Unit, cut
from domain.money import PriceBook


def settle(
    stays: Stays,
    stretches: Iterable[NodeStretch],
    *,
    period: Period,
    zone: tzinfo,
    book: PriceBook,
    terms: Terms,
) -> Statement:
    """
    The statement of a period.

    Args:
        period: a month (`domain.calendar.month`), or the part of it that is over.

    Raises:
        PolicyError: the price book has no price for something that was there.
    """
    days = cut(period.window, zone, Unit.DAY)
    cutter = Cutter.over(days, stretches, book)
    usage, not_held = usage_lines(stays, cutter)
    capacity, hours, not_there = capacity_lines(stays, cutter)
    return statement(
        distributed(charges(usage, capacity), terms.distribution),
        days=days,
        period=period,
        terms=terms,
        hours=hours,
        unknown=(*not_held, *not_there),
    )
