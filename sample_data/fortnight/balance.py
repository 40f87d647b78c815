"""
Who should have had how much, and the debt of it: by brute force, from the definitions alone.

Quantities are GPUs (floats), debts GPU-hours.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sample_data.fortnight.lives import Json, Life
from sample_data.fortnight.site import ROOT, Site

_HALF_LIFE_HOURS = 7 * 24
_MS_PER_HOUR = 3_600_000
_EVERY_MS = 12 * _MS_PER_HOUR
_MICRO = 1_000_000


@dataclass(slots=True, kw_only=True)
class Account:
    """A queue in a pool, as it stands."""

    queue: str
    cohort: str
    quota: float = 0.0
    borrowing: float = math.inf
    lending: float = math.inf
    demand: float = 0.0
    held: float = 0.0
    debt: float = 0.0
    entitled: float = 0.0


@dataclass(slots=True, kw_only=True)
class PoolState:
    """A flavor's queues and nodes, as they stand."""

    site: Site
    flavor: str
    own: float = 0.0
    accounts: dict[str, Account] = field(default_factory=dict)
    offered: dict[str, tuple[bool, float]] = field(default_factory=dict)
    on_node: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    others: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def capacity(self) -> float:
        """
        GPUs that are schedulable or held by the queues, less those that others hold.

        Of a node whose cards are cut differently those count that the queues have quota for: the
        rest nobody could ever get through them.
        """
        total = 0.0
        for node, (open_, offers) in self.offered.items():
            total += max(offers - self.others[node] if open_ else 0.0, self.on_node[node])
        return total

    def entitle(self) -> None:
        """Work out what each queue should have now."""
        queues = list(self.accounts.values())
        capacity = self.capacity()
        given = {one.queue: min(one.demand, one.quota) for one in queues}
        if sum(given.values()) > capacity:
            given = water(capacity, given, {one.queue: one.quota for one in queues})
        lendable = sum(min(one.quota - given[one.queue], one.lending) for one in queues)
        surplus = max(0.0, min(capacity - sum(given.values()), lendable + self.own))
        room = {
            one.queue: max(0.0, min(one.demand, one.quota + one.borrowing) - given[one.queue])
            for one in queues
        }
        for queue, more in self._poured(ROOT, surplus, room).items():
            self.accounts[queue].entitled = given[queue] + more

    def _poured(self, cohort: str, amount: float, room: dict[str, float]) -> dict[str, float]:
        """An amount among a cohort's queues and cohorts below, a weight of one each."""
        queues = [one.queue for one in self.accounts.values() if one.cohort == cohort]
        below = [one.name for one in self.site.cohorts if one.parent == cohort]
        caps = {queue: room[queue] for queue in queues}
        caps |= {f"cohort {name}": self._room(name, room) for name in below}
        shares = water(amount, caps, dict.fromkeys(caps, 1.0))
        found = {queue: shares[queue] for queue in queues}
        for name in below:
            found |= self._poured(name, shares[f"cohort {name}"], room)
        return found

    def _room(self, cohort: str, room: dict[str, float]) -> float:
        own = sum(room[one.queue] for one in self.accounts.values() if one.cohort == cohort)
        return own + sum(self._room(one.name, room) for one in self.site.cohorts if one.parent == cohort)

    def age(self, elapsed_ms: int) -> None:
        """Let debts fade and grow over a time in which nothing changed."""
        hours = elapsed_ms / _MS_PER_HOUR
        kept = 2 ** (-hours / _HALF_LIFE_HOURS)
        grown = _HALF_LIFE_HOURS / math.log(2) * (1 - kept)
        for one in self.accounts.values():
            one.debt = one.debt * kept + (one.entitled - one.held) * grown

    def rows(self, at_ms: int) -> list[Json]:
        """How every queue stands."""
        queues = list(self.accounts.values())
        borrowed = {one.queue: max(0.0, one.held - one.quota) for one in queues}
        unused = {one.queue: min(max(0.0, one.quota - one.held), one.lending) for one in queues}
        lent = min(sum(borrowed.values()), sum(unused.values()))
        return [
            {
                "at": at_ms / 1000,
                "pool": f"{ROOT}/{self.flavor}",
                "queue": one.queue,
                "quota": one.quota,
                "demand": round(one.demand, 6),
                "held": round(one.held, 6),
                "entitled": round(one.entitled, 6),
                "borrowed": round(borrowed[one.queue], 6),
                "lent": round(lent * unused[one.queue] / sum(unused.values()), 6) if lent else 0.0,
                "debt": round(one.debt, 6),
                "capacity": round(self.capacity(), 6),
            }
            for one in queues
        ]


def water(amount: float, caps: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """Weighted max-min: everybody gets the same per weight, up to the cap."""
    shares = dict.fromkeys(caps, 0.0)
    thirsty = {key for key, cap in caps.items() if cap > 0 and weights[key] > 0}
    left = amount
    while thirsty and left > 1e-9:
        level = left / sum(weights[key] for key in thirsty)
        full = {key for key in thirsty if caps[key] <= weights[key] * level}
        for key in full or thirsty:
            shares[key] = caps[key] if full else weights[key] * level
            left -= shares[key]
        thirsty = thirsty - full if full else set()
    return shares


@dataclass(frozen=True, slots=True)
class _Change:
    """Something that changes a pool; `what` is the name of a field of the account, or where GPUs are."""

    at_ms: int
    flavor: str
    what: str
    key: str
    value: float
    open_: bool = True


def balances(  # noqa: PLR0913 - a truth has that many sources
    lives: Iterable[Life],
    *,
    site: Site,
    quotas: list[Json],
    capacity: list[Json],
    never_fits: set[str],
    start_ms: int,
    end_ms: int,
) -> list[Json]:
    """
    How every queue stood in every pool each twelve hours and at the end.

    Args:
        lives: all workloads.
        site: what stands there.
        quotas: what was written when.
        capacity: what each node offered when.
        never_fits: workloads that ask more than can ever be.
        start_ms: where the account begins, with no debt.
        end_ms: of the recording.
    """
    pools = {flavor: PoolState(site=site, flavor=flavor) for flavor in site.flavors}
    for flavor, pool in pools.items():
        for queue in site.queues:
            pool.accounts[queue.name] = Account(queue=queue.name, cohort=queue.cohort)
        pool.own = sum(
            limit.nominal * site.flavors[flavor].micro_gpus(kind[1]) / _MICRO
            for cohort in site.cohorts
            for kind, limit in cohort.quotas.items()
            if kind[0] == flavor
        )
    changes = [*_of_quotas(site, quotas), *_of_nodes(site, capacity)]
    for life in lives:
        changes += _of_life(life, site, counts=life.uid not in never_fits, end_ms=end_ms)
    changes.sort(key=lambda change: change.at_ms)
    rows: list[Json] = []
    marks = [*range(start_ms + _EVERY_MS, end_ms, _EVERY_MS), end_ms]
    now = dict.fromkeys(pools, start_ms)
    for change in changes:
        while marks and marks[0] <= change.at_ms:
            rows += _stand(pools, now, marks.pop(0))
        if change.at_ms > now[change.flavor]:
            _advance(pools[change.flavor], now, change.at_ms)
        _apply(pools[change.flavor], change)
    for mark in marks:
        rows += _stand(pools, now, mark)
    return rows


def _advance(pool: PoolState, now: dict[str, int], at_ms: int) -> None:
    pool.entitle()
    pool.age(at_ms - now[pool.flavor])
    now[pool.flavor] = at_ms


def _stand(pools: dict[str, PoolState], now: dict[str, int], at_ms: int) -> list[Json]:
    for pool in pools.values():
        _advance(pool, now, at_ms)
    return [row for pool in pools.values() for row in pool.rows(at_ms)]


def _apply(pool: PoolState, change: _Change) -> None:
    match change.what:
        case "node":
            pool.offered[change.key] = (change.open_, change.value)
        case "others":
            pool.others[change.key] += change.value
        case "on_node":
            pool.on_node[change.key] += change.value
        case "held" | "demand":
            account = pool.accounts[change.key]
            setattr(account, change.what, getattr(account, change.what) + change.value)
        case limit:
            setattr(pool.accounts[change.key], limit, change.value)


def _of_quotas(site: Site, quotas: list[Json]) -> Iterable[_Change]:
    for row in quotas:
        size = site.flavors[row["flavor"]].micro_gpus(row["resource"]) / _MICRO
        at_ms, flavor, queue = round(row["at"] * 1000), row["flavor"], row["queue"]
        yield _Change(at_ms, flavor, "quota", queue, row["nominal"] * size)
        for name in ("borrowing", "lending"):
            if row[name] is not None:
                yield _Change(at_ms, flavor, name, queue, row[name] * size)


def _of_nodes(site: Site, capacity: list[Json]) -> Iterable[_Change]:
    flavor_of = {node: flavor for flavor in site.flavors.values() for node in flavor.nodes}
    shared_out = set(site.kinds())
    for row in capacity:
        flavor = flavor_of[row["node"]]
        cards = sum(one.gpus for one in flavor.carvings if (flavor.name, one.resource) in shared_out)
        offers = 0.0 if row["gone"] else float(cards) - row["missing"]
        at_ms = round(row["at"] * 1000)
        yield _Change(at_ms, flavor.name, "node", row["node"], offers, open_=row["schedulable"])


def _of_life(life: Life, site: Site, *, counts: bool, end_ms: int) -> Iterable[_Change]:
    """Changes of what a workload holds and asks."""
    request = life.request
    flavor = request.flavor
    size = site.flavors[flavor].micro_gpus(request.resource) / _MICRO
    stays = [
        (pod.bound_ms, end_ms if pod.released_ms is None else pod.released_ms, pod)
        for pod in life.pods
        if pod.bound_ms is not None
    ]
    for start, end, pod in stays:
        if (flavor, request.resource) not in site.kinds():
            continue
        where = "others" if life.bare else "on_node"
        yield _Change(start, flavor, where, pod.node, request.gpus * size)
        yield _Change(end, flavor, where, pod.node, -request.gpus * size)
        if not life.bare:
            yield _Change(start, flavor, "held", life.queue, request.gpus * size)
            yield _Change(end, flavor, "held", life.queue, -request.gpus * size)
    if life.bare or not counts:
        return
    waits = [(start, end_ms if end is None else end) for start, end in life.waits]
    edges = sorted(
        {at for start, end, _ in stays for at in (start, end)} | {at for pair in waits for at in pair}
    )
    before = 0.0
    for at in edges:
        waiting = any(start <= at < end for start, end in waits)
        held = sum(request.gpus for start, end, _ in stays if start <= at < end)
        asked = (max(request.total, held) if waiting else held) * size
        if asked != before:
            yield _Change(at, flavor, "demand", life.queue, asked - before)
        before = asked
