"""Exact charges of usage and capacity, and who bears what nobody used."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Final

from analytics.chargeback.capacity import CapacityLine, Kind
from analytics.chargeback.stays import Owner
from analytics.chargeback.usage import UsageLine
from domain.money import Exact, Price, cost
from domain.quantity import largest_remainder

IDLE: Final = "__idle__"
UNALLOCATED: Final = "__unallocated__"
UNAVAILABLE: Final = "__unavailable__"
OVERLAP: Final = "__overlap__"
_OWN_LINE = {Kind.IDLE: IDLE, Kind.UNAVAILABLE: UNAVAILABLE, Kind.OVERLAP: OVERLAP}
_SHARES = {Kind.IDLE: Kind.IDLE_SHARE, Kind.UNAVAILABLE: Kind.UNAVAILABLE_SHARE}


class IdlePolicy(StrEnum):
    """By what idle capacity is distributed over the teams of its pool and day."""

    NONE = "none"
    BY_USE = "by_use"
    BY_QUOTA = "by_quota"
    EVENLY = "evenly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The grain at which capacity is shared: GPUs of one model in one cluster, on one day."""

    cluster: str
    gpu_model: str
    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """
    Who bears capacity that nobody used.

    `quotas` is quota times time by pool and team, in micro-GPU-milliseconds. `evenly` is over the
    teams that held or had quota in the pool that day. Unavailable capacity is distributed only
    where `unavailable_too` says so.
    """

    policy: IdlePolicy = IdlePolicy.NONE
    unavailable_too: bool = False
    quotas: Mapping[Pool, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """
    GPU-time of one kind and owner in a pool, with its exact costs in `domain.money.PARTS` of a currency unit.

    Time and costs of an overlap are written positive and taken off by the statement. `price` is the row
    of the price book that it was priced by; None where none was.
    """

    kind: Kind
    pool: Pool
    owner: Owner
    micro_gpu_ms: int
    list_cost: Exact
    contracted_cost: Exact
    effective_cost: Exact
    price: Price | None = None


def charges(usage: Iterable[UsageLine], capacity: Iterable[CapacityLine]) -> list[Charge]:
    """Priced lines; what nobody held has an owner of its own, such as `__idle__`."""
    pools: dict[tuple[str, str, str], Pool] = {}

    def pool(line: UsageLine | CapacityLine) -> Pool:
        place = line.cluster, line.gpu_model, line.day
        if place not in pools:
            pools[place] = Pool(cluster=line.cluster, gpu_model=line.gpu_model, day=line.day)
        return pools[place]

    held = [_priced(line, pool(line), Kind.HELD, line.owner) for line in usage]
    return held + [
        _priced(line, pool(line), line.kind, Owner(team=_OWN_LINE[line.kind])) for line in capacity
    ]


def distributed(found: Iterable[Charge], distribution: Distribution) -> list[Charge]:
    """
    The same charges, with what nobody used borne as the policy says; sums stay the same.

    What is to be shared and has nobody to share it, because the pool had no use (or quota) that
    day, is `__unallocated__`.
    """
    given = list(found)
    if distribution.policy is IdlePolicy.NONE:
        return given
    shared = {Kind.IDLE, Kind.UNAVAILABLE} if distribution.unavailable_too else {Kind.IDLE}
    used: dict[Pool, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for charge in given:
        if charge.kind is Kind.HELD:
            used[charge.pool][charge.owner.team] += charge.micro_gpu_ms
    result: list[Charge] = []
    for charge in given:
        if charge.kind in shared:
            weights = _weights(distribution, used.get(charge.pool, {}), charge.pool)
            result += _split(charge, weights)
        else:
            result.append(charge)
    return result


def _priced(line: UsageLine | CapacityLine, pool: Pool, kind: Kind, owner: Owner) -> Charge:
    price = line.price
    listed = cost(line.micro_gpu_ms, price.listed)
    contracted = listed if price.contracted is None else cost(line.micro_gpu_ms, price.contracted)
    effective = contracted if price.effective is None else cost(line.micro_gpu_ms, price.effective)
    return Charge(
        kind=kind,
        pool=pool,
        owner=owner,
        micro_gpu_ms=line.micro_gpu_ms,
        list_cost=listed,
        contracted_cost=contracted,
        effective_cost=effective,
        price=price,
    )


def _weights(distribution: Distribution, used: Mapping[str, int], pool: Pool) -> dict[str, int]:
    quotas = distribution.quotas.get(pool, {})
    match distribution.policy:
        case IdlePolicy.BY_USE:
            return dict(used)
        case IdlePolicy.BY_QUOTA:
            return dict(quotas)
        case _:
            return {team: 1 for amounts in (used, quotas) for team, amount in amounts.items() if amount > 0}


def _split(charge: Charge, weights: Mapping[str, int]) -> Iterator[Charge]:
    whole = sum(weights.values())
    if whole <= 0:
        yield replace(charge, owner=Owner(team=UNALLOCATED))
        return
    teams = sorted(team for team in weights if weights[team] > 0)
    times = largest_remainder(charge.micro_gpu_ms, [weights[team] for team in teams])
    for team, micro_gpu_ms in zip(teams, times, strict=True):
        part = Fraction(weights[team], whole)
        yield Charge(
            kind=_SHARES[charge.kind],
            pool=charge.pool,
            owner=Owner(team=team),
            micro_gpu_ms=micro_gpu_ms,
            list_cost=charge.list_cost * part,
            contracted_cost=charge.contracted_cost * part,
            effective_cost=charge.effective_cost * part,
            price=charge.price,
        )
