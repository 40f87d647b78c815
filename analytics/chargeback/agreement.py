"""What a site agreed on about money."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final

from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.extras import BorneBy, Preempted, SharedCost
from analytics.chargeback.statement import Billing
from domain.money import Currency, PriceBook

_IDLE_WORDS: Final = {
    IdlePolicy.NONE: "Idle capacity is a line of its own that nobody bears.",
    IdlePolicy.BY_USE: "Idle capacity is borne by the teams of its cluster, model and day by what they held.",
    IdlePolicy.BY_QUOTA: "Idle capacity is borne by the teams of its cluster, model and day by their quota.",
    IdlePolicy.EVENLY: "Idle capacity is borne evenly by the teams that used, or had quota in, its cluster,"
    " model and day.",
}
_BILLING_WORDS: Final = {
    Billing.SHOWBACK: "Showback: costs are shown, and nothing is billed.",
    Billing.CHARGEBACK: "Chargeback: what is billed is the effective cost.",
}
_CREDIT: Final = (
    "Work that a preemption lost is credited at the mean price of held time on the day it is known"
)
_BEARER_WORDS: Final = {
    BorneBy.NOBODY: f"{_CREDIT}; nobody bears it.",
    BorneBy.PREEMPTOR: f"{_CREDIT}; the preemptor's team bears it, or nobody where it is not known.",
    BorneBy.IDLE: f"{_CREDIT}; it is borne as idle capacity is.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCentre:
    """What a team is booked on, in `[from_ms, to_ms)`; the last in the order of time is from then on."""

    code: str
    from_ms: int = 0
    to_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """
    Prices, the billing calendar, and who bears what nobody used.

    Without prices there are GPU-hours and no money. `cost_centres` is by team; `close_coverage` the share of
    a month that must have been observed for it to be closed without a reason. `preempted_borne_by` counts
    where preempted work is credited. `provider` runs the GPUs and issues invoices; FOCUS tells it, and
    `billing_account` with it.
    """

    currency: Currency = field(default_factory=lambda: Currency.of("USD"))
    book: PriceBook = field(default_factory=lambda: PriceBook(()))
    zone: tzinfo = UTC
    zone_name: str = "UTC"
    billing: Billing = Billing.SHOWBACK
    idle: IdlePolicy = IdlePolicy.NONE
    unavailable_too: bool = False
    cost_centres: Mapping[str, Sequence[CostCentre]] = field(default_factory=dict)
    close_coverage: float = 0.99
    shared_costs: Sequence[SharedCost] = ()
    preempted: Preempted = Preempted.CHARGED
    preempted_borne_by: BorneBy = BorneBy.NOBODY
    provider: str = "GPU platform"
    billing_account: str = "gpu-platform"

    def cost_centre(self, team: str, before_ms: int) -> str:
        """What a team was booked on just before an instant, as a month's end; empty where nothing says so."""
        holding = [
            centre
            for centre in self.cost_centres.get(team, ())
            if centre.from_ms < before_ms and (centre.to_ms is None or before_ms <= centre.to_ms)
        ]
        return max(holding, key=lambda centre: centre.from_ms).code if holding else ""

    def in_words(self) -> tuple[str, ...]:
        """What was agreed beside the prices, in sentences."""
        unavailable = "as idle capacity is" if self.unavailable_too else "by nobody"
        credited = self.preempted is Preempted.CREDITED
        return (
            _BILLING_WORDS[self.billing],
            _IDLE_WORDS[self.idle],
            f"Capacity that was not available is borne {unavailable}.",
            _BEARER_WORDS[self.preempted_borne_by] if credited else "Work that a preemption lost is paid.",
            *(_in_words(cost) for cost in self.shared_costs),
        )


def _in_words(cost: SharedCost) -> str:
    by = {"by_use": "by held GPU-time", "by_quota": "by quota", "evenly": "evenly"}[cost.by]
    return f"{cost.name}: {cost.monthly} a month, day by day, shared among teams {by}."
