"""
Whether the scheduler has stalled: work waits that it could place, and it binds nothing.

Definitions leave open what is quota-admissible: here work that is admitted and is being placed; and work
that waits for quota, where in one flavor that it may use all that its queue holds back for that flavor would
fit into what is left of the queue's own quota of it at once, so that the order in the queue does not matter.
What might be borrowed is left out, so that nothing is accused that Kueue may rightly keep back. Nothing was
bound: no pod with GPUs, in the whole cluster.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from analytics.evaluate import NOTHING_OBSERVED, whole
from analytics.fragmentation.inventory import is_placeable
from analytics.fragmentation.pools import Pool, pools
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_SECOND
from domain.workload import State

LATE: Final = "late"
ROOM: Final = "room"
# A quota: cluster, queue, flavor, and the GPU model where the queue has no flavors.
_Quota: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """A workload that waits: in which state and queue, for how much, and whether that is too long."""

    state: str
    queue: str
    micro_gpus: int
    late: bool


def stalled(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Workloads that wait too long for a place that is there, while nothing was bound for as long."""
    after_ms = round(ask.policy.scheduler_stalled_after.total_seconds() * MS_PER_SECOND)
    waits = {
        (str(row["cluster"]), str(row["name"])): _Wait(
            state=str(row["flavor"]),
            queue=str(row["queue"]),
            micro_gpus=whole(row, "capacity"),
            late=min(whole(row, "devices"), whole(row, "bound")) > after_ms,
        )
        for row in rows
        if row["what"] == LATE
    }
    found: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    here = list(pools(rows))
    open_quotas = _open_quotas(rows, waits, here)
    for labels, pool in here:
        key = tuple(labels[name] for name in ask.by)
        # A workload that may go to several pools is one.
        found.setdefault(key, set()).update(
            (labels["cluster"], uid)
            for uid in pool.asks
            if (wait := waits.get((labels["cluster"], uid))) and wait.late
            if _could_go(uid, wait, labels, pool, open_quotas)
        )
    return [
        Sample(labels=dict(zip(ask.by, key, strict=True)), value=len(stuck)) for key, stuck in found.items()
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


def _could_go(
    uid: str, wait: _Wait, labels: Mapping[str, str], pool: Pool, open_quotas: frozenset[_Quota]
) -> bool:
    """Whether a workload has a place in the pool, and quota that leads there."""
    if wait.state == State.PLACING:
        return is_placeable(pool.asks[uid], pool.inventory)
    return wait.state == State.QUEUED and any(
        quota in open_quotas
        and (through := pool.ask_through(uid, quota[2])) is not None
        and is_placeable(through, pool.inventory)
        for quota in _quotas(uid, wait, labels, pool)
    )


def _open_quotas(
    rows: Sequence[Row],
    waits: Mapping[tuple[str, str], _Wait],
    here: Sequence[tuple[Mapping[str, str], Pool]],
) -> frozenset[_Quota]:
    """Quotas with room for all at once that is held back and might use them."""
    wanting = {
        (quota, uid): wait
        for labels, pool in here
        for uid in pool.asks
        if (wait := waits.get((labels["cluster"], uid))) and wait.state == State.QUEUED
        for quota in _quotas(uid, wait, labels, pool)
    }
    wanted: Counter[_Quota] = Counter()
    unknown = {quota for (quota, _), wait in wanting.items() if wait.micro_gpus < 0}
    for (quota, _), wait in wanting.items():
        wanted[quota] += wait.micro_gpus
    rooms = {
        _quota(row, str(row["queue"]), str(row["flavor"])): whole(row, "capacity")
        for row in rows
        if row["what"] == ROOM
    }
    return frozenset(quota for quota, room in rooms.items() if wanted[quota] <= room and quota not in unknown)


def _quotas(uid: str, wait: _Wait, labels: Mapping[str, str], pool: Pool) -> Iterator[_Quota]:
    """The quotas by which a workload might come into the pool."""
    return (_quota(labels, wait.queue, flavor) for flavor in pool.flavors_of(uid))


def _quota(labels: Mapping[str, object], queue: str, flavor: str) -> _Quota:
    return str(labels["cluster"]), queue, flavor, "" if flavor else str(labels["gpu_model"])
