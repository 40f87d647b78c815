"""
What Kueue says of a Workload that has no quota, or has it and is not admitted.

`couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more
needed, flavor h100 doesn't match node affinity. Pending the preemption of 2 workload(s)`: one reason for each
flavor that was tried, and one part for each pod set. A pod set goes by the flavor that comes nearest, and the
workload by the pod set that is furthest away.

Source: pkg/scheduler/flavorassigner, pkg/scheduler/scheduler.go and pkg/workload of Kueue v0.8 to v0.19.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from analytics.why.reason import Blocker, BlockerKind, Finding, Reason, Source, Value

_PART = re.compile(r"couldn't assign flavors to pod set (?P<pod_set>\S+): (?P<reasons>.*)", re.DOTALL)
_TAIL = re.compile(
    r"\. (?:Pending the preemption of (?P<pending>\d+) workload\(s\)"
    r"|Preempting (?P<failed>\d+) workload\(s\) failed, will retry)\.?$"
)
_RESOURCE = r"(?P<resource>\S+) in flavor (?P<flavor>[^\s,]+)"
_UNUSED = re.compile(
    rf"insufficient unused quota(?P<in_cohort> in cohort)? for {_RESOURCE}, (?P<missing>\S+) more needed"
)
_BEYOND = re.compile(
    rf"insufficient quota for {_RESOURCE}, previously considered podsets requests \((?P<before>[^)]*)\) "
    r"\+ current podset request \((?P<asked>[^)]*)\) > maximum capacity \((?P<capacity>[^)]*)\)"
)
_BEYOND_BEFORE = re.compile(
    rf"insufficient quota for {_RESOURCE}, request > maximum capacity "
    r"\((?P<asked>\S+) > (?P<capacity>[^)\s]+)\)"
)
_BORROWING = re.compile(rf"borrowing limit for {_RESOURCE} exceeded")
_TAINT = re.compile(r"untolerated taint (?P<taint>\{[^}]*\}|\S+) in flavor (?P<flavor>[^\s,]+)")
_AFFINITY = re.compile(r"flavor (?P<flavor>\S+) doesn't match node affinity")
_NO_FLAVOR = re.compile(r"flavor (?P<flavor>\S+) not found")
_NO_RESOURCE = re.compile(r"resource (?P<resource>\S+) unavailable in ClusterQueue")
_TOPOLOGY = re.compile(
    r'topology "(?P<topology>[^"]*)" (?:doesn\'t allow to fit any of (?P<none_of>\d+)'
    r"|allows to fit only (?P<fit>\d+) out of (?P<wanted>\d+)) (?P<unit>pod|slice)\(s\)"
)
_QUEUE = re.compile(
    r"^(?P<kind>LocalQueue|ClusterQueue) (?P<queue>\S+) "
    r"(?P<why>doesn't exist|is inactive|is stopped|is terminating or missing|not found)"
)
_REJECTED = re.compile(r'AdmissionCheck.* in Rejected state: "?(?P<check>[^"]+)"?')
_PREEMPTED = re.compile(r"Preempted to accommodate a workload \(UID: (?P<uid>[^,)]+)")
_TOPOLOGY_OF_FLAVOR = re.compile(
    r'Flavor "(?P<flavor>[^"]+)" (?P<problem>does not support TopologyAwareScheduling'
    r"|supports only TopologyAwareScheduling|does not contain the requested level)"
)
_TIMEOUT = "Exceeded the PodsReady timeout"

_COMPARE = "Compare its node selector and tolerations with the flavors of its queue."
_COMPARE_TOPOLOGY = "Compare the topology that it asks for with those of its queue's flavors."
_PODS_FIRST = "Wait until the pods of workloads that were admitted before are ready."
_WAIT_FOR_QUOTA = "Wait until jobs under this quota end, or ask for less of it."
# Texts that stand alone: contained text, reason, whether a closer look may find another one, remedy.
_TEXTS: tuple[tuple[str, Reason, bool, str], ...] = (
    ("overlapping preemption targets", Reason.PREEMPTING, False,
     "Nothing to do: those who must leave for it leave for another workload first."),
    ("no longer fits after processing another workload", Reason.BEHIND_IN_QUEUE, False,
     "Wait: another workload was taken first in this round."),
    ("pending evaluation", Reason.BEHIND_IN_QUEUE, False, "Wait: Kueue has not looked at it yet."),
    ("to be in PodsReady condition", Reason.BEHIND_IN_QUEUE, False,
     _PODS_FIRST),
    ("has failed admission checks", Reason.ADMISSION_CHECK, False, "Ask who decides on the admission check."),
    (_TIMEOUT, Reason.BACKOFF, False, "Find out why its pods did not become ready in time."),
    ("The ClusterQueue is stopped", Reason.HELD_BY_OWNER, False, "Ask who stopped the queue."),
    ("The LocalQueue is stopped", Reason.HELD_BY_OWNER, False, "Ask who stopped the queue."),
    ("The workload is deactivated", Reason.HELD_BY_OWNER, False, "Activate it again: spec.active = true."),
)  # fmt: skip
# What must be corrected before it is looked at: contained text, what it is refused for, remedy.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    ("orkload namespace doesn't match ClusterQueue selector", "namespace",
     "Use a queue that takes work of its namespace, or ask for this one to take it (namespaceSelector)."),
    ("validation failed: ", "resources", "Correct what its pods ask: no request may exceed its limit."),
    ("satisfy LimitRange constraints", "limit_range",
     "Correct what its pods ask: it must lie within the LimitRange of the namespace."),
)  # fmt: skip

# The machine-readable reasons of the condition QuotaReserved (v0.19); `Pending` and `Inadmissible` say no
# more than their text.
_REASONS: Mapping[str, tuple[Reason, bool, str]] = {
    "Misconfigured": (Reason.MISCONFIGURED, False, "Correct the queue that it names."),
    "NoMatchingFlavor": (Reason.CONSTRAINT, False, _COMPARE),
    "Suspended": (Reason.HELD_BY_OWNER, False, "Ask who stopped the queue."),
    "OnHold": (Reason.HELD_BY_OWNER, False, "Ask who stopped the queue."),
    "AdmissionGated": (Reason.GATED, False, "Whoever set the admission gate must take it away."),
    "Waiting": (Reason.BEHIND_IN_QUEUE, False, _PODS_FIRST),
    "WaitingForPodsReady": (Reason.BEHIND_IN_QUEUE, False, _PODS_FIRST),
    "ExceedsMaxQuota": (Reason.NEVER_FITS, False, "Ask for less: its queue can never have so much."),
    "WaitingForQuota": (Reason.QUOTA_EXHAUSTED, True, _WAIT_FOR_QUOTA),
    "TopologyPlacementFailed": (Reason.FRAGMENTATION, True, "Ask for a wider topology, or for fewer pods."),
    "WaitingForPreemptedWorkloads": (Reason.PREEMPTING, False, "Nothing to do: others are leaving for it."),
    "PendingEvaluation": (Reason.BEHIND_IN_QUEUE, False, "Wait: Kueue has not looked at it yet."),
}  # fmt: skip

# The reasons of Events that say why a Workload has no quota: those of the condition.
PENDING_WORDS = ("Pending", "Inadmissible", *_REASONS)


def read(text: str) -> list[Finding]:
    """The findings in one text of Kueue; none where it is of another program."""
    text = text.removeprefix("Previously: ")
    tail = _TAIL.search(text)
    body = text[: tail.start()] if tail else text
    found = [each for part in body.split("; ") if (each := _of_pod_set(part))]
    if found:
        worst = min(found, key=lambda one: one.reason.rank)
        return [*([_victims(int(tail["pending"]))] if tail and tail["pending"] else []), worst]
    if queue := _QUEUE.match(text):
        return [_of_queue(queue)]
    if rejected := _REJECTED.search(text):
        evidence: dict[str, Value] = {"check": rejected["check"]}
        remedy = "The admission check refused it: change the request, or ask who decides."
        return [_finding(Reason.HELD_BY_OWNER, evidence, remedy)]
    for said, reason, coarse, remedy in _TEXTS:
        if said in text:
            evidence = {"word": "Deactivated"} if "deactivated" in said else {}
            return [_finding(reason, evidence, remedy, coarse=coarse)]
    for said, refused_for, remedy in _REFUSALS:
        if said in text:
            return [_finding(Reason.MISCONFIGURED, {"refused_for": refused_for}, remedy)]
    if preempted := _PREEMPTED.search(text):
        # The text of its eviction stands until Kueue has looked at it again.
        return [
            _finding(Reason.QUOTA_EXHAUSTED, {"preemptor": preempted["uid"]}, _WAIT_FOR_QUOTA, coarse=True)
        ]
    return []


def by_reason(reason: str, text: str, found: list[Finding]) -> list[Finding]:
    """
    The same with what the machine-readable reason says, which wins.

    A finding of the text with that reason keeps its numbers; any other one of the text stays beside it.
    """
    known = _REASONS.get(reason)
    if known is None or (reason == "Waiting" and "PodsReady" not in text):
        return found
    stated, coarse, remedy = known
    of_text = [one for one in found if one.reason is not Reason.UNKNOWN]
    same = [one for one in of_text if one.reason is stated]
    if same:
        return [
            replace(one, source=Source.STATED, is_coarse=coarse) if one in same else one for one in of_text
        ]
    if coarse and of_text:
        # It says no more than that quota is missing, and the text says which.
        return [replace(one, source=Source.STATED) for one in of_text]
    evidence = of_text[0].evidence if of_text else {}
    return [
        Finding(reason=stated, source=Source.STATED, evidence=evidence, remedy=remedy, is_coarse=coarse),
        *(one for one in of_text if not one.is_coarse),
    ]


def _of_pod_set(part: str) -> Finding | None:
    """Why the flavor that comes nearest does not do for one pod set."""
    told = _PART.search(part)
    if told is None:
        return None
    ways = list(_ways(told["reasons"]))
    if not ways:
        return None
    nearest = max(ways, key=_nearness)
    return replace(nearest, evidence={"pod_set": told["pod_set"], **nearest.evidence})


# How near a flavor is for each reason: by that the flavor is chosen that speaks for the pod set.
_NEARNESS = {
    reason: near
    for near, reason in enumerate(
        (Reason.MISCONFIGURED, Reason.CONSTRAINT, Reason.NEVER_FITS, Reason.BORROWING_LIMIT,
         Reason.COHORT_EXHAUSTED, Reason.QUOTA_EXHAUSTED, Reason.FRAGMENTATION)
    )
}  # fmt: skip


def _nearness(way: Finding) -> tuple[int, float]:
    missing = way.evidence.get("missing", 0)
    return _NEARNESS[way.reason], -missing if isinstance(missing, int | float) else 0.0


def _ways(reasons: str) -> Iterable[Finding]:
    for told in _UNUSED.finditer(reasons):
        reason = Reason.COHORT_EXHAUSTED if told["in_cohort"] else Reason.QUOTA_EXHAUSTED
        yield _finding(reason, _evidence(told, "missing"), _WAIT_FOR_QUOTA, coarse=not told["in_cohort"])
    for beyond in (*_BEYOND.finditer(reasons), *_BEYOND_BEFORE.finditer(reasons)):
        remedy = "Ask for less: its queue can never have so much."
        # Kueue tells of the flavors that fail, and says nothing of one that it only lost to others.
        yield _finding(
            Reason.NEVER_FITS, _evidence(beyond, "before", "asked", "capacity"), remedy, coarse=True
        )
    for told in _BORROWING.finditer(reasons):
        remedy = "Wait until jobs of the own queue end: it may not borrow more."
        yield _finding(Reason.BORROWING_LIMIT, _evidence(told), remedy)
    for told in (*_TAINT.finditer(reasons), *_AFFINITY.finditer(reasons)):
        yield _finding(Reason.CONSTRAINT, _evidence(told), _COMPARE)
    for told in _TOPOLOGY_OF_FLAVOR.finditer(reasons):
        problem = {"flavor": told["flavor"], "topology_problem": told["problem"]}
        yield _finding(Reason.CONSTRAINT, problem, _COMPARE_TOPOLOGY)
    for told in (*_NO_FLAVOR.finditer(reasons), *_NO_RESOURCE.finditer(reasons)):
        yield _finding(
            Reason.MISCONFIGURED, _evidence(told), "Correct the resources or flavors of the queue."
        )
    for told in _TOPOLOGY.finditer(reasons):
        numbers = {name: int(told[name]) for name in ("none_of", "fit", "wanted") if told[name] is not None}
        evidence: dict[str, Value] = {"topology": told["topology"], "unit": told["unit"], **numbers}
        yield _finding(
            Reason.FRAGMENTATION, evidence, "Ask for a wider topology, or for fewer pods.", coarse=True
        )


def _evidence(told: re.Match[str], *numbers: str) -> dict[str, Value]:
    named: dict[str, Value] = {
        name: told[name] for name in ("flavor", "resource", "taint") if told.groupdict().get(name)
    }
    return named | {name: _number(told[name]) for name in numbers if told.groupdict().get(name)}


def _number(text: str) -> Value:
    """
    A quantity of Kubernetes; a whole one as a number, else as it was written.

    >>> _number("8"), _number("500m")
    (8, '500m')
    """
    return int(text) if text.isascii() and text.isdigit() else text


def _victims(count: int) -> Finding:
    return _finding(Reason.PREEMPTING, {"victims": count}, "Nothing to do: others are leaving for it.")


def _of_queue(told: re.Match[str]) -> Finding:
    evidence: dict[str, Value] = {"queue_kind": told["kind"], "queue": told["queue"], "problem": told["why"]}
    blocker = Blocker(kind=BlockerKind.QUEUE, name=told["queue"])
    if told["why"] == "is stopped":
        return Finding(
            reason=Reason.HELD_BY_OWNER, source=Source.MESSAGE, evidence=evidence, blockers=(blocker,),
            remedy="Ask who stopped the queue.",
        )  # fmt: skip
    inactive = told["why"] == "is inactive"
    return Finding(
        reason=Reason.MISCONFIGURED,
        source=Source.MESSAGE,
        evidence=evidence,
        blockers=(blocker,),
        remedy="Ask who runs the queue: it is stopped, or misses a flavor or check."
        if inactive
        else "Name a queue that exists, or have this one made.",
        # A queue that somebody stopped says the same as one that lacks a flavor.
        is_coarse=inactive,
    )


def _finding(reason: Reason, evidence: Mapping[str, Value], remedy: str, *, coarse: bool = False) -> Finding:
    return Finding(reason=reason, source=Source.MESSAGE, evidence=evidence, remedy=remedy, is_coarse=coarse)
