"""The primary reason over time: what a look at all that waits changes of what earlier ones found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from analytics.why.reason import BlockerKind, Explanation, Reason

FOREVER: Final = 2**63 - 1
# Of time at which nobody looked; no reason of the definitions.
NOT_EVALUATED: Final = "NOT_EVALUATED"
# What may stand in the way of many; workloads and nodes are another one each time.
_LASTING: Final = frozenset(BlockerKind) - {BlockerKind.WORKLOAD, BlockerKind.NODE, BlockerKind.OBJECT}
_OF_DEVICES: Final = (Reason.GPU_SHORTAGE, Reason.FRAGMENTATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a look found of a workload that has been in its state since `since_ms`."""

    uid: str
    since_ms: int
    reason: str
    source: str
    blocker: str = ""

    @classmethod
    def of(cls, uid: str, since_ms: int, answer: Explanation) -> "Found":
        """The primary reason of an answer."""
        primary = answer.primary
        return cls(
            uid=uid,
            since_ms=since_ms,
            reason=str(primary.reason),
            source=primary.source.name.lower(),
            blocker=in_the_way(answer),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Looks that found the same; `end_ms` is `FOREVER` while the last one stands."""

    uid: str
    reason: str
    source: str
    blocker: str
    start_ms: int
    end_ms: int = FOREVER


def in_the_way(answer: Explanation) -> str:
    """
    What stands in the way, in the same words for all whom it is in the way of; empty where there is no such.

    No workload is named: see `Finding.blockers` for those.
    """
    primary = answer.primary
    for one in primary.blockers:
        if one.kind in _LASTING:
            return f"{one.kind} {one.name}"
    if primary.reason in _OF_DEVICES:
        return str(primary.evidence.get("resource", ""))
    return ""


def looked(
    standing: Iterable[Stretch], found: Sequence[Found], *, at_ms: int, before_ms: int, stands_ms: int
) -> list[Stretch]:
    """
    The stretches that a look changes, in the place of those of the same workloads that stood.

    A look stands until the next one, at most for `stands_ms`, and back to the look before for what changed
    its state meanwhile. What found the same goes on and is not among them. Stretches of a workload never
    overlap; one may be empty, and is then to be dropped.

    Args:
        standing: stretches without an end, one for each workload at most.
        found: of all that wait at the look.
        at_ms: when.
        before_ms: when the look before was.
        stands_ms: positive.
    """
    now = {one.uid: one for one in found}
    # Until when the look before stands, and from when on this one may count.
    stood_ms = min(at_ms, before_ms + stands_ms)
    first_ms = max(before_ms, at_ms - stands_ms)
    changed: list[Stretch] = []
    ended: dict[str, int] = {}
    for one in standing:
        new = now.get(one.uid)
        if new is not None and stood_ms == at_ms and (new.reason, new.blocker) == (one.reason, one.blocker):
            del now[one.uid]
            continue
        end_ms = stood_ms
        if new is not None and new.since_ms > before_ms:
            # It ran, or was held, in between: what was found before was of another wait.
            end_ms = min(stood_ms, new.since_ms)
        ended[one.uid] = max(end_ms, one.start_ms)
        changed.append(replace(one, end_ms=ended[one.uid]))
    changed += [
        Stretch(
            uid=uid,
            reason=one.reason,
            source=one.source,
            blocker=one.blocker,
            start_ms=max(one.since_ms, first_ms, ended.get(uid, 0)),
        )
        for uid, one in now.items()
    ]
    return changed
