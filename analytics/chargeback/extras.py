"""
Charges beside capacity: fixed monthly costs that are shared, and work that was lost to preemption.

They have money and no GPU-time, so the books of capacity close as without them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final, TypeAlias

from analytics.chargeback.capacity import Kind
from analytics.chargeback.distribution import IDLE, UNALLOCATED, Charge, Distribution, Pool
from analytics.chargeback.stays import Owner
from domain.calendar import Period
from domain.money import PARTS, Exact

# Who bears lost work that nobody bears, or whose preemptor is not known.
PREEMPTED: Final = "__preempted__"
_Rates: TypeAlias = tuple[Fraction, Fraction, Fraction]


class SharedBy(StrEnum):
    """By what a fixed cost of a day is shared among teams."""

    USE = "by_use"
    QUOTA = "by_quota"
    EVENLY = "evenly"


class Preempted(StrEnum):
    """Whether a team pays for running time that a preemption lost."""

    CHARGED = "charged"
    CREDITED = "credited"


class BorneBy(StrEnum):
    """Who bears what a team is credited for."""

    NOBODY = "nobody"
    PREEMPTOR = "preemptor"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCost:
    """A fixed cost per month, such as storage or operations, in `[from_ms, to_ms)` by whole days."""

    name: str
    monthly: Decimal
    by: SharedBy = SharedBy.USE
    from_ms: int = 0
    to_ms: int | None = None

    def holds(self, day: Period) -> bool:
        """Whether the day bears it."""
        return self.from_ms <= day.start_ms and (self.to_ms is None or day.start_ms < self.to_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Running time of an owner that became known as lost to a preemption on a day; and by which team."""

    pool: Pool
    owner: Owner
    preemptor: str
    micro_gpu_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """
    What is charged beside capacity.

    `month_ms` is the length of the whole month of each day, by its label.
    """

    shared: Sequence[SharedCost] = ()
    month_ms: Mapping[str, int] = field(default_factory=dict)
    lost: Sequence[Lost] = ()
    borne_by: BorneBy = BorneBy.NOBODY


def extra_charges(
    found: Sequence[Charge], extras: Extras, days: Sequence[Period], distribution: Distribution
) -> list[Charge]:
    """
    The charges of a period beside capacity.

    Args:
        found: charges of capacity, before idle is distributed.
        distribution: has the quotas by which a cost may be shared.
    """
    return [*_shared(found, extras, days, distribution), *_credited(found, extras)]


def _shared(
    found: Sequence[Charge], extras: Extras, days: Sequence[Period], distribution: Distribution
) -> Iterator[Charge]:
    if not extras.shared:
        return
    used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    agreed: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for charge in found:
        if charge.kind is Kind.HELD:
            used[charge.pool.day][charge.owner.team] += charge.micro_gpu_ms
    for pool, quotas in distribution.quotas.items():
        for team, amount in quotas.items():
            agreed[pool.day][team] += amount
    for day in days:
        of_day = Fraction(day.end_ms - day.start_ms, extras.month_ms[day.label])
        for cost in extras.shared:
            if cost.holds(day):
                weights = _weights(cost.by, used[day.label], agreed[day.label])
                yield from _parts(cost, day.label, PARTS * Fraction(cost.monthly) * of_day, weights)


def _weights(by: SharedBy, used: Mapping[str, int], agreed: Mapping[str, int]) -> Mapping[str, int]:
    match by:
        case SharedBy.USE:
            return used
        case SharedBy.QUOTA:
            return agreed
        case _:
            return {team: 1 for amounts in (used, agreed) for team, amount in amounts.items() if amount > 0}


def _parts(cost: SharedCost, day: str, amount: Fraction, weights: Mapping[str, int]) -> Iterator[Charge]:
    whole = sum(weights.values())
    bearers = {team: weight for team, weight in weights.items() if weight > 0} or {UNALLOCATED: 1}
    for team in sorted(bearers):
        part = amount * Fraction(bearers[team], whole or 1)
        yield Charge(
            kind=Kind.SHARED, pool=Pool(cluster="", gpu_model="", day=day),
            owner=Owner(team=team, project=cost.name), micro_gpu_ms=0,
            list_cost=part, contracted_cost=part, effective_cost=part,
        )  # fmt: skip


def _credited(found: Sequence[Charge], extras: Extras) -> Iterator[Charge]:
    """A credit for each lost stretch, and what it is borne by: the sum stays what capacity costs."""
    if not extras.lost:
        return
    rates = _Prices(found)
    for lost in extras.lost:
        listed, contracted, effective = (rate * lost.micro_gpu_ms for rate in rates.of(lost.pool))
        credit = Charge(
            kind=Kind.PREEMPTION_CREDIT, pool=lost.pool, owner=lost.owner, micro_gpu_ms=0,
            list_cost=listed, contracted_cost=contracted, effective_cost=effective,
        )  # fmt: skip
        yield credit
        if extras.borne_by is BorneBy.IDLE:
            yield replace(credit, kind=Kind.IDLE, owner=Owner(team=IDLE))
        else:
            bearer = lost.preemptor if extras.borne_by is BorneBy.PREEMPTOR else ""
            yield replace(credit, kind=Kind.PREEMPTION_CHARGE, owner=Owner(team=bearer or PREEMPTED))


class _Prices:
    """Mean list, contracted and effective price of held time: of a pool's day, else of all of its days."""

    def __init__(self, found: Iterable[Charge]) -> None:
        self._sums: dict[tuple[str, str, str], list[Exact]] = {}
        for charge in found:
            if charge.kind is Kind.HELD:
                for day in (charge.pool.day, ""):
                    self._add((charge.pool.cluster, charge.pool.gpu_model, day), charge)

    def of(self, pool: Pool) -> _Rates:
        """Parts per micro-GPU-millisecond; 0 where nothing of the pool was held in the period."""
        for day in (pool.day, ""):
            sums = self._sums.get((pool.cluster, pool.gpu_model, day))
            if sums is not None and sums[0]:
                listed, contracted, effective = (Fraction(cost) / sums[0] for cost in sums[1:])
                return listed, contracted, effective
        return Fraction(), Fraction(), Fraction()

    def _add(self, key: tuple[str, str, str], charge: Charge) -> None:
        sums = self._sums.setdefault(key, [0] * 4)
        amounts = (charge.micro_gpu_ms, charge.list_cost, charge.contracted_cost, charge.effective_cost)
        self._sums[key] = [total + amount for total, amount in zip(sums, amounts, strict=True)]
