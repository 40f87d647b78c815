"""A month from what the store knows: who held what, what it was good for, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from typing import Final

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.capacity import Kind
from analytics.chargeback.distribution import Distribution, IdlePolicy, Pool
from analytics.chargeback.extras import Extras, Preempted
from analytics.chargeback.line import Causes, Line
from analytics.chargeback.quota_lines import QUOTA, QuotaLine, at_average_price
from analytics.chargeback.settle import settle_sums
from analytics.chargeback.statement import COSTS, DIMENSIONS, Row, Statement, Terms
from domain.calendar import Period, Unit, cut, running
from domain.errors import PolicyError
from domain.money import Price, PriceBook
from domain.tenant import Tenancy
from service import present_teams
from service.caused_time import caused_time, in_teams
from service.held_days import held_in
from service.held_time import unread
from service.preempted_time import lost_time
from service.quota_time import quota_by_pool, quota_lines
from service.statement_figures import Month
from store.embedded import Store

NO_PRICES: Final = "no prices are set: add money.prices or money.price_file to the settings"
NO_CAUSES: Final = "no cause is known yet of what was held in these days"
_KEY: Final = attrgetter(*DIMENSIONS)
_NONE: Final[Causes] = {}
_NEVER_RENAMED: Final = Tenancy()
# Makes lines where nothing is priced; no amount of it is ever shown.
_UNPRICED: Final = PriceBook((Price(listed=Decimal(0), valid_from_ms=0),))


def settled(
    store: Store,
    agreement: Agreement,
    period: Period,
    *,
    tenancy: Tenancy = _NEVER_RENAMED,
    of_teams: bool = False,
) -> Month:
    """
    A month, or its days until now, from what the store knows.

    Args:
        tenancy: says how teams are called now; lines have these names.
        of_teams: whether rows of whole teams are enough, one for each cluster, model and day: amounts
            are apportioned to teams first, so that their sums are the same.
    """
    window, days = period.window, cut(period.window, agreement.zone, Unit.DAY)
    # Only a share of idle capacity, or a charge beside it, is a second kind of row of a team.
    beside = agreement.shared_costs or agreement.preempted is Preempted.CREDITED
    of_teams = of_teams and agreement.idle is IdlePolicy.NONE and not beside
    held = [
        (present_teams.of_held(part, tenancy), cutter)
        for part, cutter in held_in(store, agreement, days, fine=not of_teams)
    ]
    quotas = present_teams.of_quotas(quota_by_pool(store, days), tenancy)
    terms = Terms(
        currency=agreement.currency,
        billing=agreement.billing,
        distribution=Distribution(
            policy=agreement.idle, unavailable_too=agreement.unavailable_too, quotas=quotas
        ),
    )

    extras = _extras(store, agreement, days, tenancy)

    def priced(book: PriceBook) -> Statement:
        parts = [(part, cutter.at(book)) for part, cutter in held]
        beside = Extras() if book is _UNPRICED else extras
        made = settle_sums(parts, period=period, terms=terms, extras=beside)
        return replace(made, unknown=(*unread(store, window), *made.unknown))

    because = "" if agreement.book.prices else NO_PRICES
    try:
        found = priced(_UNPRICED if because else agreement.book)
    except PolicyError as missing:
        # Where a part has no price, every sum would be wrong: GPU-hours only, and the reason.
        because, found = str(missing), priced(_UNPRICED)
    causes = present_teams.of_causes(caused_time(store, days), tenancy)
    causes = in_teams(causes) if of_teams else causes
    no_causes_because = "" if causes or not found.hours.held else NO_CAUSES
    lines = [
        Line(row=row, causes=causes.pop(_KEY(row), _NONE) if row.kind == Kind.HELD else _NONE)
        for row in found.rows
    ]
    zero = agreement.currency.amount(0)
    free = dict.fromkeys(COSTS, zero)
    lines += [
        Line(row=Row(**dict(zip(DIMENSIONS, key, strict=True)), **free), causes=causes[key])  # type: ignore[arg-type]
        for key in sorted(causes)
    ]
    notes = present_teams.of_quota_lines(quota_lines(store, days), tenancy)
    lines += [_quota_line(line, found.average_prices, agreement) for line in notes]
    return Month(
        statement=found,
        lines=tuple(lines),
        no_money_because=because,
        no_causes_because=no_causes_because,
    )


def _extras(store: Store, agreement: Agreement, days: Sequence[Period], tenancy: Tenancy) -> Extras:
    """What is charged beside capacity."""
    credited = agreement.preempted is Preempted.CREDITED
    months = {day.label: running(day.end_ms, agreement.zone, Unit.MONTH) for day in days}
    return Extras(
        shared=agreement.shared_costs,
        month_ms={label: whole.end_ms - whole.start_ms for label, whole in months.items()},
        lost=present_teams.of_lost(lost_time(store, days), tenancy) if credited else (),
        borne_by=agreement.preempted_borne_by,
    )


def _quota_line(line: QuotaLine, prices: Mapping[Pool, Fraction], agreement: Agreement) -> Line:
    free = agreement.currency.amount(0)
    return Line(
        row=Row(
            day=line.day, kind=QUOTA, cluster=line.cluster, team=line.team, queue=line.queue,
            gpu_model=line.gpu_model,
            list_cost=free, contracted_cost=free, effective_cost=free, billed_cost=free,
        ),
        causes={},
        quota=line.time,
        worth=at_average_price(line, prices, agreement.currency),
    )  # fmt: skip
