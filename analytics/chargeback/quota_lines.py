"""Lines of quota: what a holder lent, borrowed and left unused, in GPU-hours and at the effective price."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, NamedTuple

from analytics.chargeback.distribution import Pool
from domain.money import Currency

# The kind of a line of quota. It has no GPU-time of its own, so it is charged nothing.
QUOTA: Final = "quota"
# The team of a line whose quota no team has used yet.
NO_TEAM: Final = "__no_team__"
NOTES: Final = ("lent", "borrowed", "unused_commitment")
NOTE_COSTS: Final = tuple(f"{name}_cost" for name in NOTES)


class QuotaTime(NamedTuple):
    """Quota times time, micro-GPU-milliseconds: lent, borrowed, and neither used nor lent."""

    lent: int
    borrowed: int
    unused_commitment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLine:
    """
    A holder's quota of one cluster, model and day; `team` names all teams where several share it.

    `gpu_model` names several models, with commas, where the quota is one for all of them.
    """

    day: str
    cluster: str
    team: str
    queue: str
    gpu_model: str
    time: QuotaTime


def at_average_price(
    line: QuotaLine, prices: Mapping[Pool, Fraction], currency: Currency
) -> tuple[Decimal | None, ...]:
    """
    The worth of what was lent, borrowed and unused; None where there is some and its price is not known.

    A quota for several models is worth the mean of their prices.
    """
    models = line.gpu_model.split(", ")
    asked = (prices.get(Pool(cluster=line.cluster, gpu_model=model, day=line.day)) for model in models)
    known = [price for price in asked if price is not None]
    price = sum(known, Fraction()) / len(known) if known else None

    def worth(amount: int) -> Decimal | None:
        if amount == 0:
            return currency.amount(0)
        return None if price is None else currency.round(amount * price)

    return tuple(worth(amount) for amount in line.time)
