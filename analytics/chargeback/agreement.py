"""What a site agreed on about money."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.statement import Billing
from domain.money import Currency, PriceBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """
    Prices, the billing calendar, and who bears what nobody used.

    Without prices there are GPU-hours and no money. `cost_centres` is by team.
    """

    currency: Currency = field(default_factory=lambda: Currency.of("USD"))
    book: PriceBook = field(default_factory=lambda: PriceBook(()))
    zone: tzinfo = UTC
    zone_name: str = "UTC"
    billing: Billing = Billing.SHOWBACK
    idle: IdlePolicy = IdlePolicy.NONE
    unavailable_too: bool = False
    cost_centres: Mapping[str, str] = field(default_factory=dict)
