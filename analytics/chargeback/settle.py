"""From stays and nodes to the statement of a month: all steps in their order."""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Final

from analytics.chargeback import capacity, usage
from analytics.chargeback.capacity import Hours
from analytics.chargeback.cutter import Cutter
from analytics.chargeback.distribution import Charge, charges, distributed
from analytics.chargeback.extras import Extras, extra_charges
from analytics.chargeback.held import Held
from analytics.chargeback.statement import Statement, Terms, statement
from analytics.chargeback.stays import NodeStretch, Stays
from analytics.chargeback.usage import neighbours_joined
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
    cutter = Cutter.over(cut(period.window, zone, Unit.DAY), stretches, book)
    return settle_sums([(Held.of(stays, cutter), cutter)], period=period, terms=terms, extras=extras)


def settle_sums(
    parts: Sequence[tuple[Held, Cutter]], *, period: Period, terms: Terms, extras: Extras = _NONE
) -> Statement:
    """
    The same of what was added up already, over the days of each cutter and at its prices.

    Args:
        parts: of the period, in the order of their days; none has a day of another.
        extras: what is charged beside capacity.

    Raises:
        PolicyError: the price book has no price for something that was there.
    """
    found: list[Charge] = []
    hours: dict[str, Hours] = {}
    for held, cutter in parts:
        there, of_days = capacity.lines_of(held.levels, cutter)
        found += charges(usage.lines_of(held.usage, held.skus, cutter), there)
        hours |= of_days
    days = [day for _, cutter in parts for day in cutter.days]
    found += extra_charges(found, extras, days, terms.distribution)
    return statement(
        distributed(found, terms.distribution),
        days=days,
        period=period,
        terms=terms,
        hours=hours,
        unknown=neighbours_joined(each for held, _ in parts for each in held.unknown),
    )
