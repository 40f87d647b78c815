"""
What is said of gangs: by Volcano, scheduler-plugins, KAI, Kubernetes' own PodGroups, Kueue's pod groups.

Source: `pod group is not ready, ...` of Volcano's `JobInfo.FitError`; coscheduling of scheduler-plugins;
KAI's PodGroup conditions; the gang plugin of kube-scheduler 1.36; Kueue's pod integration.
"""

import re
from collections.abc import Mapping

from analytics.why.messages import nodes
from analytics.why.reason import Finding, Reason, Source, Value

_WRAPPED = re.compile(r"^PodGroup \S+ unschedulable, reason: ")
_TASKS = re.compile(r"^(?P<tasks>\d+)/(?P<gang>\d+) tasks in gang unschedulable: ")
_VOLCANO = re.compile(
    r"^pod group is (?P<not_ready>not )?ready(?P<counts>(?:, \d+ \w+)*)"
    r"(?:; Pending: (?P<pending>\d+ \w+(?:, \d+ \w+)*))?"
    r"(?:\. Origin reason is (?P<pod>\S+): (?P<origin>.*))?$",
    re.DOTALL,
)
_COUNT = re.compile(r"(\d+) (\w+)")
_FITS = re.compile(
    r"^Pod \S+ can possibly be assigned to (?P<node>\S+), once (?P<released>resource is released and )?"
    r"minAvailable is satisfied"
)
_SIBLINGS = re.compile(
    r"pre-filter pod \S+ cannot find enough sibling pods, current pods number: (?P<pods>\d+), "
    r"minMember of group: (?P<min_member>\d+)"
)
_KAI = re.compile(r"^Resources were not found for pod group (?P<group>\S+)")
_KUEUE = re.compile(r"^'(?P<group>[^']+)' group has fewer runnable pods than expected")
_REJECTED = (
    "gets rejected due to",
    "failed recently",
    "optimistic rejection in PostFilter",
    "resource gap",
    "waiting for minCount pods from a gang to be scheduled",
)
_MISSING = "waiting for minCount pods from a gang to appear in scheduling queue"
_PREEMPTS = "pod group is waiting for preemption to complete"
_WAIT = "Wait for GPUs to come free for all members at once, or ask for fewer members."
_COMPLETE = "Create the missing members: the gang starts when all of them are there."


def read(text: str) -> list[Finding]:
    """The findings in one text about a gang; none where it is about something else."""
    said = _WRAPPED.sub("", text)
    tasks = _TASKS.match(said)
    volcano = _VOLCANO.match(said[tasks.end() :] if tasks else said)
    if volcano:
        return _of_volcano(volcano, {name: int(n) for name, n in tasks.groupdict().items()} if tasks else {})
    if fits := _FITS.match(said):
        evidence: dict[str, Value] = {"node": fits["node"]}
        if fits["released"]:
            return [_exact(Reason.PREEMPTING, evidence, "Nothing to do: room is being made for it.")]
        return [_coarse(evidence)]
    if kai := _KAI.match(said):
        return [_coarse({"pod_group": kai["group"]})]
    if kueue := _KUEUE.match(said):
        return [_exact(Reason.GANG_INCOMPLETE, {"pod_group": kueue["group"]}, _COMPLETE)]
    return _in_tree(nodes.refused_before(said) or said)


def _in_tree(text: str) -> list[Finding]:
    if siblings := _SIBLINGS.search(text):
        evidence = {name: int(count) for name, count in siblings.groupdict().items()}
        return [_exact(Reason.GANG_INCOMPLETE, evidence, _COMPLETE)]
    if _MISSING in text:
        return [_exact(Reason.GANG_INCOMPLETE, {}, _COMPLETE)]
    if _PREEMPTS in text:
        remedy = "Nothing to do: pods of lower priority are leaving for it."
        return [_exact(Reason.PREEMPTING, {}, remedy)]
    return [_coarse({})] if any(said in text for said in _REJECTED) else []


def _of_volcano(volcano: re.Match[str], evidence: Mapping[str, Value]) -> list[Finding]:
    counts = {word: int(count) for count, word in _COUNT.findall(volcano["counts"])}
    tasks = {word: int(count) for count, word in _COUNT.findall(volcano["pending"] or "")}
    least = counts.get("minAvailable", 0)
    evidence = {**evidence, **{_snake(word): count for word, count in (counts | tasks).items()}}
    found = nodes.read(volcano["origin"]) if volcano["origin"] else []
    found = [_with(each, evidence) for each in found]
    if volcano["not_ready"] is None:
        # The gang runs; a further member waits.
        return found or [_coarse(evidence)]
    if counts.get("Pipelined"):
        found.append(_exact(Reason.PREEMPTING, evidence, "Nothing to do: room is being made for it."))
    there = sum(count for word, count in counts.items() if word not in ("minAvailable", "Failed"))
    if there == 0 and not counts.get("Failed"):
        # Volcano makes the pods of its own jobs only once the queue lets the group in.
        return [*found, _coarse(evidence)]
    if there < least:
        found.append(_exact(Reason.GANG_INCOMPLETE, evidence, _COMPLETE))
    return found or [_coarse(evidence)]


def _snake(word: str) -> str:
    """
    A word of Volcano as evidence spells it.

    >>> _snake("minAvailable"), _snake("Pending")
    ('min_available', 'pending')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", word).lower()


def _with(each: Finding, evidence: Mapping[str, Value]) -> Finding:
    return Finding(
        reason=each.reason,
        source=each.source,
        evidence={**evidence, **each.evidence},
        remedy=each.remedy,
        is_coarse=each.is_coarse,
    )


def _coarse(evidence: Mapping[str, Value]) -> Finding:
    return Finding(
        reason=Reason.GPU_SHORTAGE, source=Source.MESSAGE, evidence=evidence, remedy=_WAIT, is_coarse=True
    )


def _exact(reason: Reason, evidence: Mapping[str, Value], remedy: str) -> Finding:
    return Finding(reason=reason, source=Source.MESSAGE, evidence=evidence, remedy=remedy)
