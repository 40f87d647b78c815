"""Hard limits that lend nothing: a namespace's ResourceQuota, and the queues of Volcano and KAI."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from analytics.why.reason import Blocker, BlockerKind, Finding, Reason, Source
from domain.objects import KaiQueue, ResourceQuota, VolcanoQueue
from domain.quantity import Quota, QuotaKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What a holder may have of a resource at most, and what it has; whole numbers of one unit."""

    holder: str
    resource: str
    most: int
    used: int
    kind: BlockerKind = BlockerKind.QUEUE


def within(asked: Mapping[str, int], ceilings: Iterable[Ceiling]) -> tuple[Finding, ...]:
    """
    Why limits do not let a workload in, most severe reason first; empty where all do.

    NEVER_FITS where it asks more than a limit, QUOTA_EXHAUSTED where more is in use than leaves room for it.

    Args:
        asked: by resource.
        ceilings: of all that bind it; those of other resources count nothing.

    >>> tight = Ceiling(holder="team", resource="nvidia.com/gpu", most=16, used=12)
    >>> [str(one.reason) for one in within({"nvidia.com/gpu": 8}, [tight])]
    ['QUOTA_EXHAUSTED']
    """
    found: dict[Reason, Finding] = {}
    for one in ceilings:
        wanted = asked.get(one.resource, 0)
        if not wanted or one.used + wanted <= one.most:
            continue
        reason = Reason.NEVER_FITS if wanted > one.most else Reason.QUOTA_EXHAUSTED
        before = found.get(reason)
        blocker = Blocker(kind=one.kind, name=one.holder)
        found[reason] = Finding(
            reason=reason,
            source=Source.QUOTA,
            evidence=before.evidence
            if before
            else {
                "queue": one.holder,
                "resource": one.resource,
                "asked": wanted,
                "nominal": one.most,
                "used": one.used,
                **({"namespace_free": max(one.most - one.used, 0)} if one.kind is BlockerKind.OBJECT else {}),
                "missing": wanted - one.most + (0 if reason is Reason.NEVER_FITS else one.used),
            },
            blockers=(*(before.blockers if before else ()), blocker),
            remedy=_REMEDIES[reason],
        )
    return tuple(sorted(found.values(), key=lambda one: one.reason.rank))


def of_namespace(quotas: Mapping[str, ResourceQuota], *, used: Mapping[str, int]) -> Iterator[Ceiling]:
    """
    What the ResourceQuotas of a namespace let its pods ask, in thousandths.

    Args:
        quotas: by name, all that count each pod.
        used: by resource, what pods ask that are there and not over, bound or not.

    Source: Kubernetes `pkg/quota/v1/evaluator/core/pods.go`: a pod counts until it is over.
    """
    for name, quota in sorted(quotas.items()):
        for resource, hard in sorted(quota.hard.items()):
            most = _number(hard)
            if most is not None:
                taken = used.get(resource, 0)
                yield Ceiling(holder=name, resource=resource, most=most, used=taken, kind=BlockerKind.OBJECT)


def of_volcano(
    queue: str,
    resource: str,
    queues: Mapping[str, VolcanoQueue],
    *,
    used: Mapping[str, int],
    offered: int | None = None,
) -> Iterator[Ceiling]:
    """
    The capabilities of a queue of Volcano and of those above it, in thousandths.

    What is guaranteed to others is theirs: where it is known what the nodes offer, a queue at the top has at
    most that, less the guarantees of those beside it.

    Args:
        queue: the workload's.
        resource: of which.
        queues: all of them by name.
        used: by queue, what its own workloads have.
        offered: of all nodes together.

    Source: Volcano `pkg/scheduler/plugins/capacity`, `realCapability`.
    """
    for name, taken in _line(queue, queues, used):
        body = queues[name]
        limits = [limit for limit in (_number(body.capability.get(resource)),) if limit is not None]
        if offered is not None:
            siblings = [one for other, one in queues.items() if other != name and one.parent == body.parent]
            kept = sum(_number(one.guarantee.get(resource)) or 0 for one in siblings)
            limits += [offered - kept] if kept else []
        if limits:
            yield Ceiling(holder=name, resource=resource, most=min(limits), used=taken)


def of_kai(
    queue: str,
    queues: Mapping[str, KaiQueue],
    *,
    used: Mapping[str, int],
    within_quota: bool = False,
    resource: str = "nvidia.com/gpu",
) -> Iterator[Ceiling]:
    """
    The limits of a queue of KAI and of those above it, in thousandths of GPUs.

    Args:
        queue: the workload's.
        queues: all of them by name.
        used: by queue, what its own workloads have.
        within_quota: KAI lets work that cannot be preempted have the queue's quota only.
        resource: as which GPUs are asked.
    """
    for name, taken in _line(queue, queues, used):
        body = queues[name]
        limit = _number(body.limit)
        if within_quota:
            quota = 0 if body.quota.kind is QuotaKind.NOT_SET else _number(body.quota)
            limit = quota if limit is None else limit if quota is None else min(limit, quota)
        if limit is not None:
            yield Ceiling(holder=name, resource=resource, most=limit, used=taken)


class _Queue(Protocol):
    @property
    def parent(self) -> str: ...


_Q = TypeVar("_Q", bound=_Queue)


def _line(queue: str, queues: Mapping[str, _Q], used: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """A queue and those above it, each with what it and all below it have; a circle is cut."""
    passed: set[str] = set()
    while queue in queues and queue not in passed:
        passed.add(queue)
        yield queue, sum(taken for other, taken in used.items() if queue in _above(other, queues))
        queue = queues[queue].parent


def _above(queue: str, queues: Mapping[str, _Q]) -> set[str]:
    found: set[str] = set()
    while queue in queues and queue not in found:
        found.add(queue)
        queue = queues[queue].parent
    return found


def _number(quota: Quota | None) -> int | None:
    return quota.milli if quota is not None and quota.kind is QuotaKind.NUMBER else None


# Parents of Volcano's queues that stand below nobody.
_TOP: Final = ("", "root")
_REMEDIES: Final = {
    Reason.NEVER_FITS: "Ask for less, or for a higher limit.",
    Reason.QUOTA_EXHAUSTED: "Wait until work under the same limit ends, or ask for less.",
}
