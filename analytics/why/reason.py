"""The words of an answer to "why does my job wait": reasons, where they come from, and the whole answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import TypeAlias

# Numbers survive as numbers; a list of names is a tuple.
Value: TypeAlias = int | float | str | tuple[str, ...]


class Reason(StrEnum):
    """
    Why a workload waits; the order of the members is the precedence (definitions, section 3).

    >>> Reason.NEVER_FITS.rank < Reason.GPU_SHORTAGE.rank
    True
    """

    HELD_BY_OWNER = "HELD_BY_OWNER"
    GATED = "GATED"
    MISCONFIGURED = "MISCONFIGURED"
    NEVER_FITS = "NEVER_FITS"
    BACKOFF = "BACKOFF"
    ADMISSION_CHECK = "ADMISSION_CHECK"
    PREEMPTING = "PREEMPTING"
    QUOTA_EXHAUSTED = "QUOTA_EXHAUSTED"
    BORROWING_LIMIT = "BORROWING_LIMIT"
    COHORT_EXHAUSTED = "COHORT_EXHAUSTED"
    BEHIND_IN_QUEUE = "BEHIND_IN_QUEUE"
    GANG_INCOMPLETE = "GANG_INCOMPLETE"
    NODE_UNAVAILABLE = "NODE_UNAVAILABLE"
    CONSTRAINT = "CONSTRAINT"
    OTHER_RESOURCE = "OTHER_RESOURCE"
    FRAGMENTATION = "FRAGMENTATION"
    GPU_SHORTAGE = "GPU_SHORTAGE"
    STARTING = "STARTING"
    UNKNOWN = "UNKNOWN"

    @property
    def rank(self) -> int:
        """0 for the reason that comes before all others."""
        return _RANKS[self]


_RANKS = {reason: rank for rank, reason in enumerate(Reason)}


class Source(IntEnum):
    """Who says so; the lower the number, the more it is trusted."""

    STATED = 0
    MESSAGE = 1
    PLACEMENT = 2
    QUOTA = 3
    ORDER = 4

    @property
    def words(self) -> str:
        """As a person reads it."""
        return _SOURCES[self]


_SOURCES = {
    Source.STATED: "the object's own state",
    Source.MESSAGE: "the scheduler's message",
    Source.PLACEMENT: "our search for a placement",
    Source.QUOTA: "our arithmetic of quota",
    Source.ORDER: "the order of the queue",
}


class BlockerKind(StrEnum):
    """What stands in the way; without it the workload would go on, or come one step nearer."""

    WORKLOAD = "workload"
    NODE = "node"
    TAINT = "taint"
    SELECTOR = "selector"
    QUEUE = "queue"
    COHORT = "cohort"
    CHECK = "check"
    GATE = "gate"
    OBJECT = "object"
    AFFINITY = "affinity"
    TOPOLOGY = "topology"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """
    One thing that stands in the way.

    `name` is a workload's uid, or the name of a node, `key=value:effect` of a taint, `key=value` of a
    selector, of a queue and so on. `devices` is how much of what is wanted it holds, in whole devices of the
    resource wanted, None where it is not about devices; `node` is where.
    """

    kind: BlockerKind
    name: str
    node: str = ""
    devices: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One true reason.

    `evidence` has numbers and names that everybody may see (nodes, flavors, queues; no workload of others).
    `text` is the scheduler's text, verbatim. `is_coarse` marks what a message cannot tell apart: "not enough
    GPUs" may be a shortage, fragmentation or a request that never fits, and a search tells which.
    """

    reason: Reason
    source: Source
    evidence: Mapping[str, Value] = field(default_factory=dict)
    remedy: str = ""
    text: str = ""
    blockers: tuple[Blocker, ...] = ()
    since_ms: int | None = None
    is_coarse: bool = False

    @property
    def order(self) -> tuple[int, int]:
        """
        Its place among the reasons: by precedence, but for two (docs/adr/0033).

        A selector says which GPUs are wanted. Where waiting for those would do (`waiting` is `helps`), to do
        without it is a way to start sooner, and comes after what the workload waits for. Behind the head of a
        StrictFIFO queue quota is not asked of it; once others that stood before it were admitted (`passed`),
        it waits for its turn.
        """
        if self.reason is Reason.CONSTRAINT and self.evidence.get("waiting") == "helps":
            return Reason.GPU_SHORTAGE.rank, 1
        if self.reason is Reason.BEHIND_IN_QUEUE and self.evidence.get("passed"):
            return Reason.QUOTA_EXHAUSTED.rank, -1
        return self.reason.rank, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Exactly one primary reason and all further true ones, in the order of precedence."""

    primary: Finding
    further: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, the primary one first."""
        return (self.primary, *self.further)


def explanation(findings: Iterable[Finding], *, text: str = "") -> Explanation:
    """
    One answer out of what was found.

    Findings with one reason become one: what the most trusted says, with the numbers of all that are about
    the same queue, flavor and resource. A coarse one only stands where no exact one is of its family
    (`FAMILIES`). Without any finding it is UNKNOWN.

    Args:
        findings: in any order.
        text: the scheduler's text, for an answer without a reason.

    >>> explanation([], text="no such words").primary.reason
    <Reason.UNKNOWN: 'UNKNOWN'>
    """
    by_reason: dict[Reason, list[Finding]] = {}
    for each in sorted(findings, key=lambda one: (one.is_coarse, one.source)):
        by_reason.setdefault(each.reason, []).append(each)
    exact = {reason for reason, of_reason in by_reason.items() if not of_reason[0].is_coarse}
    kept = sorted(
        (
            _joined(of_reason)
            for reason, of_reason in by_reason.items()
            if reason in exact or exact.isdisjoint(FAMILIES.get(reason, ()))
        ),
        key=lambda one: one.order,
    )
    known = [one for one in kept if one.reason is not Reason.UNKNOWN] or kept
    if not known:
        return Explanation(primary=Finding(reason=Reason.UNKNOWN, source=Source.MESSAGE, text=text))
    return Explanation(primary=known[0], further=tuple(known[1:]))


def _joined(of_reason: Sequence[Finding]) -> Finding:
    """Findings of one reason as one; the first is trusted most."""
    if len(of_reason) == 1:
        return of_reason[0]
    first = of_reason[0].evidence
    evidence: dict[str, Value] = {}
    for each in reversed(of_reason):
        if all(first.get(name, value) == value for name, value in each.evidence.items() if name in _OF_WHAT):
            evidence |= each.evidence
    return replace(
        of_reason[0],
        evidence=evidence,
        text=next((each.text for each in of_reason if each.text), ""),
        blockers=next((each.blockers for each in of_reason if each.blockers), ()),
    )


# What numbers are about: those of another flavor or resource would be read as if they were of this one.
_OF_WHAT = frozenset({"queue", "flavor", "resource", "asked"})
_ROOM = (
    Reason.NEVER_FITS, Reason.NODE_UNAVAILABLE, Reason.CONSTRAINT, Reason.OTHER_RESOURCE,
    Reason.FRAGMENTATION, Reason.GPU_SHORTAGE,
)  # fmt: skip
_QUOTA = (
    Reason.NEVER_FITS, Reason.QUOTA_EXHAUSTED, Reason.BORROWING_LIMIT, Reason.COHORT_EXHAUSTED,
    Reason.BEHIND_IN_QUEUE,
)  # fmt: skip
# What one coarse reason may turn out to be.
FAMILIES: Mapping[Reason, tuple[Reason, ...]] = {
    Reason.GPU_SHORTAGE: _ROOM,
    Reason.FRAGMENTATION: _ROOM,
    Reason.NODE_UNAVAILABLE: _ROOM,
    Reason.CONSTRAINT: _ROOM,
    Reason.QUOTA_EXHAUSTED: _QUOTA,
    Reason.NEVER_FITS: _QUOTA,
    Reason.MISCONFIGURED: (Reason.HELD_BY_OWNER, Reason.MISCONFIGURED),
}
