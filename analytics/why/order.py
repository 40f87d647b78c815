"""
Who goes first: the order of Kueue's queues, and who waits only because of others before him.

Source: Kueue `pkg/cache/queue/cluster_queue.go` (a queue's order), `pkg/scheduler/scheduler.go` (a cycle).
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from analytics.fairness.kueue_shares import Kind
from analytics.fairness.kueue_tree import Holder
from analytics.why.quota import KueueQuota, Request
from analytics.why.reason import Blocker, BlockerKind, Finding, Reason, Source, Value

# Of those ahead so many are named; how many there are is in the evidence.
MOST_NAMED: Final = 20

_Amounts: TypeAlias = Mapping[Kind, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """
    A workload that waits for quota.

    `since_ms` is Kueue's time of order: creation, or the last eviction where its settings say so. Without a
    `request` it is not known what it asks: it keeps its place, and takes nothing.
    """

    uid: str
    queue: str
    priority: int
    since_ms: int
    request: Request | None = None


def in_order(waiting: Iterable[Waiting]) -> list[Waiting]:
    """Highest priority first, of those the one that waits longest, of those the lowest uid."""
    return sorted(waiting, key=lambda one: (-one.priority, one.since_ms, one.uid))


def positions(waiting: Iterable[Waiting]) -> dict[str, int]:
    """How many are ahead of each in its own queue, by uid."""
    return {
        one.uid: ahead for queue in by_queue(waiting).values() for ahead, one in enumerate(queue)
    }  # fmt: skip


def by_queue(waiting: Iterable[Waiting]) -> dict[str, list[Waiting]]:
    """Those that wait in each queue, in their order."""
    queues: dict[str, list[Waiting]] = {}
    for one in in_order(waiting):
        queues.setdefault(one.queue, []).append(one)
    return queues


def queue_order(
    waiting: Collection[Waiting], quota: KueueQuota, *, strict: Collection[str]
) -> dict[str, Finding]:
    """
    BEHIND_IN_QUEUE by uid, for each that would not be admitted though it may have been by itself.

    Under StrictFIFO everybody but the head is behind: a head that is not admitted blocks the others. Else
    those are behind for whom there is quota now, and none any more once those before them have taken theirs,
    in their own queue or in their cohort: those are named, and if they left others might step into their
    place. Whoever is admitted in his turn is not behind: it is a matter of cycles. The quota is as before in
    the end.

    Cycles are played as Kueue plays them without fair sharing and without preemption: with fair sharing
    another queue of the cohort may go first.

    Args:
        waiting: all that wait for quota in a cluster, none of them held back by anything else.
        quota: of the cluster.
        strict: queues under StrictFIFO.
    """
    queues = by_queue(waiting)
    alone = {one.uid for one in waiting if one.request and quota.admits(one.request) is not None}
    admitted = played(queues, quota, strict=strict)
    done = {uid for uid, _ in admitted}
    by_uid = {one.uid: one for one in waiting}
    blockers = {uid: Blocker(kind=BlockerKind.WORKLOAD, name=uid) for uid in by_uid}
    # Who takes, by what he takes of: nobody else is in anybody's way.
    taking: dict[Taken, list[Waiting]] = {}
    for uid, amounts in admitted:
        one = by_uid[uid]
        for kind in amounts:
            taking.setdefault((quota.root(one.queue), kind), []).append(one)
    in_the_way: dict[Hashable, tuple[Sequence[Waiting], dict[str, Value]]] = {}
    found: dict[str, Finding] = {}
    for name, queue in queues.items():
        higher = 0
        for ahead, one in enumerate(queue):
            if queue[higher].priority > one.priority:
                higher = ahead
            if one.uid in done:
                continue
            if name in strict and ahead:
                told: dict[str, Value] = {"ahead_taking": ahead, "ahead_in_other_queues": 0, "strict_head": 1}
                named: Sequence[Waiting] = queue[: min(ahead, MOST_NAMED)]
            elif one.uid in alone and one.request:
                key = one.request.key
                if key not in in_the_way:
                    in_the_way[key] = _in_the_way(one.request, taking, quota)
                named, told = in_the_way[key]
            else:
                continue
            strategy = "StrictFIFO" if name in strict else "BestEffortFIFO"
            found[one.uid] = Finding(
                reason=Reason.BEHIND_IN_QUEUE,
                source=Source.ORDER,
                evidence={
                    "queue": name, "ahead": ahead, "ahead_by_priority": higher, "strategy": strategy, **told
                },
                blockers=tuple(blockers[other.uid] for other in named),
                remedy=_STRICT if "strict_head" in told else _BEHIND,
            )  # fmt: skip
    return found


Taken: TypeAlias = tuple[str, Kind]


def _in_the_way(
    request: Request, taking: Mapping[Taken, Sequence[Waiting]], quota: KueueQuota
) -> tuple[Sequence[Waiting], dict[str, Value]]:
    """Those who take of what a request might be given, the first ones, and how many they are."""
    names = {name for ask in request.pod_sets for name, amount in ask.amounts.items() if amount > 0}
    root = quota.root(request.queue)
    others = [
        other
        for resources, flavors in quota.groups(request.queue)
        for flavor in flavors
        if any(ask.flavors is None or flavor in ask.flavors for ask in request.pod_sets)
        for resource in sorted(resources & names)
        for other in taking.get((root, (flavor, resource)), ())
    ]
    distinct = list({other.uid: other for other in others}.values())
    return distinct[:MOST_NAMED], {
        "ahead_taking": len(distinct),
        "ahead_in_other_queues": sum(other.queue != request.queue for other in distinct),
    }


def played(
    queues: Mapping[str, Sequence[Waiting]], quota: KueueQuota, *, strict: Collection[str]
) -> list[tuple[str, _Amounts]]:
    """Who is admitted, in order, with what he takes, if nothing changed but that; quota is given back."""
    admitted: list[tuple[str, _Amounts]] = []
    given: list[tuple[str, _Amounts]] = []
    turns = {name: iter(queue) for name, queue in queues.items()}
    heads = {name: next(turn) for name, turn in turns.items()}
    while heads:
        nominated: list[tuple[int, int, int, str, Waiting]] = []
        # What does not fit now never will: quota is only taken. A strict queue stops there.
        for name in list(heads):
            one = heads[name]
            amounts = quota.admits(one.request) if one.request else None
            if amounts is not None:
                level = borrowing_level(name, amounts, quota)
                nominated.append((level, -one.priority, one.since_ms, one.uid, one))
            elif name in strict:
                del heads[name]
            else:
                _next(name, heads, turns)
        for *_, one in sorted(nominated, key=lambda each: each[:4]):
            amounts = quota.admits(one.request) if one.request else None
            if amounts is not None:
                quota.take(one.queue, amounts)
                given.append((one.queue, amounts))
                admitted.append((one.uid, amounts))
                _next(one.queue, heads, turns)
    for name, taken in given:
        quota.take(name, {kind: -amount for kind, amount in taken.items()})
    return admitted


def borrowing_level(queue: str, amounts: _Amounts, quota: KueueQuota) -> int:
    """
    How far up the cohorts a queue must borrow: 0 for not at all, else the height of the lowest with enough.

    Source: Kueue `pkg/scheduler/preemption/classical/hierarchical_preemption.go`.
    """
    levels = (_level(quota.site.tree(kind).queues[queue], amount) for kind, amount in amounts.items())
    return max(levels, default=0)


def _level(queue: Holder, asked: int) -> int:
    rest = asked
    for holder in queue.line():
        if holder.parent is None or holder.used + rest <= holder.subtree:
            return holder.height
        rest = max(0, rest - holder.own_left)
    return 0


def _next(name: str, heads: dict[str, Waiting], turns: Mapping[str, Iterator[Waiting]]) -> None:
    following = next(turns[name], None)
    if following is None:
        del heads[name]
    else:
        heads[name] = following


_STRICT: Final = "Wait until the head of the queue is admitted, or use a queue that lets others pass."
_BEHIND: Final = "Wait until those ahead are admitted and end, or ask for a higher priority."
