"""The answer in a sentence that can be read in five seconds."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from analytics.why import amounts
from analytics.why.reason import BlockerKind, Finding, Reason, Value

_ASKED: Final = "asked_"
_IN_BYTES: Final = frozenset(
    {
        "asked",
        "nominal",
        "used",
        "available",
        "at_most",
        "missing",
        "borrowing_limit",
        "cohort_unused",
        "cohort_borrowing_limit",
        "cohort_quota",
        "cohort_used",
    }
)


def sentence(finding: Finding) -> str:
    """
    A finding as one would tell it.

    >>> from analytics.why.reason import Source
    >>> told = {"resource": "nvidia.com/gpu", "asked": 8, "free": 6, "missing": 2}
    >>> sentence(Finding(reason=Reason.GPU_SHORTAGE, source=Source.PLACEMENT, evidence=told))
    'It needs 8 GPUs, and 6 are free where it may run.'
    """
    return _SENTENCES[finding.reason](_readable(finding))


def _held(finding: Finding) -> str:
    said = finding.evidence
    if "queue" in said:
        return f"Somebody stopped its queue {said['queue']}."
    if "check" in said:
        return f"The admission check {said['check']} refused it."
    if said.get("word") == "Deactivated":
        return "It is deactivated: it waits for nothing until somebody activates it again."
    return "Its owner keeps it back." if "word" in said else "Somebody stopped its queue."


def _gated(finding: Finding) -> str:
    gates = amounts.names(finding.evidence.get("gates", ()))
    return f"It is held back by the scheduling gate {gates}." if gates else "A scheduling gate holds it back."


def _misconfigured(finding: Finding) -> str:
    said = finding.evidence
    if "volume_claim" in said:
        return f"The volume claim {said['volume_claim']} does not exist."
    if "queue_kind" in said:
        return f"{said['queue_kind']} {said['queue']} {said['problem']}."
    if "denied_by" in said:
        return f"Its pods are refused by {said['denied_by']} {said['rule']}".rstrip() + "."
    if "device_class" in said:
        return f"The device class {said['device_class']} does not exist."
    if "refused_for" in said:
        return _REFUSED[str(said["refused_for"])]
    return _as_said("Something it refers to is wrong", finding)


def _never(finding: Finding) -> str:
    said, unit = finding.evidence, amounts.unit(finding)
    selectors = [one.name for one in finding.blockers if one.kind is BlockerKind.SELECTOR]
    if selectors:
        return f"It can never start: no node has {amounts.names(selectors)}."
    if "resources" in said:
        return f"It can never start: {_never_beside(said)}."
    if said.get("matching_flavors") == 0:
        return (
            f"It can never start: queue {said['queue']} has no quota for {said['resource']} where it may go."
        )
    if "asked" not in said:
        return _as_said("It can never start", finding)
    asked = f"It can never start: it asks {amounts.amount(said['asked'], unit)}"
    most = _at_most(said)
    if most:
        return f"{asked}{amounts.flavor(said)}, and {most}."
    if "largest_free" in said and said.get("pods") == 1:
        return f"{asked} on one node, and the largest node where it may run has {said['largest_free']}."
    return f"{asked}, more than there can ever be for it."


def _at_most(said: Mapping[str, Value]) -> str:
    """The limit that is lower than what it asks; empty where it is none of a queue or namespace."""
    for name in ("capacity", "at_most"):
        if name in said:
            return f"its queue can have {said[name]} at most"
    if "nominal" not in said:
        return ""
    if "namespace_free" in said:
        return f"ResourceQuota {said['queue']} of its namespace allows {said['nominal']}"
    return f"queue {said['queue']} can have {said['nominal']} at most"


def _never_beside(said: Mapping[str, Value]) -> str:
    """What of CPU, memory and the like there never is enough of."""
    if "largest_has" in said:
        has = f"the largest node where it may run has {amounts.bare(said, 'largest_has')}"
        return f"each pod asks {amounts.beside(said, 'asked_each')}, and {has}"
    little = amounts.little_of(said["resources"])
    return f"the nodes where it may run have too {little} for all of it at once"


def _backoff(finding: Finding) -> str:
    word = finding.evidence.get("word")
    return f"It failed or was thrown out{f' ({word})' if word else ''}, and waits before it is tried again."


def _checking(finding: Finding) -> str:
    checks = finding.evidence.items()
    refused = [name.removeprefix("check_") for name, state in checks if state == "Rejected"]
    if refused:
        return f"The admission check {amounts.names(refused)} refused it."
    pending = amounts.names(finding.evidence.get("pending", ()))
    return f"Its quota is reserved; the admission check {pending or 'that it needs'} is not passed yet."


def _preempting(finding: Finding) -> str:
    victims = finding.evidence.get("victims")
    who = f"{victims} workload{'' if victims == 1 else 's'}" if victims else "others"
    return f"Room is being made for it: {who} must leave first."


def _quota(finding: Finding) -> str:
    said, unit = finding.evidence, amounts.unit(finding)
    if "namespace_free" in said:
        free = f"leaves {said['namespace_free']} of {amounts.amount(said['nominal'], unit)} free"
        return f"ResourceQuota {said['queue']} of its namespace {free}, and it needs {said['asked']}."
    if "nominal" in said:
        used = f"{said['used']} of {said['nominal']} {unit}{amounts.flavor(said)} are in use"
        left = "is used up" if _is_used_up(said) else "has too little left"
        return f"The quota of {said['queue']} {left}: {used}, it needs {said['asked']}, and may not borrow."
    if "missing" in said:
        return f"It waits for quota: it misses {amounts.amount(said['missing'], unit)}{amounts.flavor(said)}."
    if "rule" in said:
        asked = [name for name in said if name.startswith(_ASKED)]
        parts = [
            f"{said.get(f'used_{name}', 0)} of {said.get(f'hard_{name}')}"
            f" {amounts.resource(name)} are in use, and a pod asks {said[f'asked_{name}']}"
            for name in (key.removeprefix(_ASKED) for key in asked)
            if f"hard_{name}" in said
        ]
        numbers = f": {'; '.join(parts)}" if parts else ""
        return f"The quota {said['rule']} of its namespace is used up{numbers}."
    return "It waits for quota."


def _is_used_up(said: Mapping[str, Value]) -> bool:
    used, nominal = said["used"], said["nominal"]
    return not (isinstance(used, int | float) and isinstance(nominal, int | float) and used < nominal)


def _borrowing(finding: Finding) -> str:
    said, unit = finding.evidence, amounts.unit(finding)
    flavor = amounts.flavor(said)
    if "cohort_borrowing_limit" in said:
        borrows = amounts.amount(said["cohort_borrowing_limit"], unit)
        limit = f"{borrows}{flavor} beyond its {said['cohort_quota']}"
        uses = f"uses {said['cohort_used']}, and it needs {said['asked']}"
        return f"Cohort {said['cohort']}, to which its queue belongs, may borrow {limit}, {uses}."
    if "borrowing_limit" in said:
        limit = f"{amounts.amount(said['borrowing_limit'], unit)}{flavor} beyond its {said['nominal']}"
        uses = f"uses {said['used']}, and it needs {said['asked']}"
        return f"Its queue {said['queue']} may borrow {limit}, {uses}."
    return f"Its queue may not borrow more{flavor}."


def _cohort(finding: Finding) -> str:
    """
    A queue that may not borrow is told of its cohort too where that has nothing left, and borrows nothing.

    >>> from analytics.why.reason import Source
    >>> told = {"queue": "nlp", "cohort": "all", "cohort_unused": 0, "missing": 8, "borrowing_limit": 0}
    >>> _cohort(Finding(reason=Reason.COHORT_EXHAUSTED, source=Source.QUOTA, evidence=told))
    'Cohort all, to which its queue belongs, has 0 GPUs left, 8 too few.'
    """
    said, unit = finding.evidence, amounts.unit(finding)
    if "cohort_unused" in said:
        unused = f"{amounts.amount(said['cohort_unused'], unit)}{amounts.flavor(said)}"
        left = f"has {unused} left, {said['missing']} too few"
        if said.get("borrowing_limit") == 0:
            return f"Cohort {said['cohort']}, to which its queue belongs, {left}."
        return f"Its queue {said['queue']} would borrow, and cohort {said['cohort']} {left}."
    return "Its queue would borrow, and nobody has quota to lend."


def _behind(finding: Finding) -> str:
    said = finding.evidence
    if said.get("ahead_taking") and said["ahead_taking"] == said.get("ahead_in_other_queues"):
        return "There is quota for it, but work of other queues of its cohort comes first."
    ahead, queue = said.get("ahead", said.get("position")), said.get("queue")
    strict = ", whose first must start before any other" if said.get("strict_head") else ""
    if isinstance(ahead, int):
        come = "workload comes" if ahead == 1 else "workloads come"
        return f"{ahead} {come} before it in queue {queue}{strict}."
    return "Others of its queue come first."


def _gang(finding: Finding) -> str:
    said = finding.evidence
    there = said.get("members", said.get("pods"))
    wanted = said.get("min_members", said.get("min_member", said.get("min_available")))
    if (there, wanted) == (0, 1):
        return "Its pod does not exist yet."
    if there is not None and wanted is not None:
        return f"It starts with all members at once: {there} of {wanted} are there."
    return "It starts with all members at once, and some do not exist yet."


def _nodes(finding: Finding) -> str:
    names = [one.name for one in finding.blockers if one.kind is BlockerKind.NODE]
    if names:
        return f"There is room only on nodes that take no pods now: {amounts.names(names)}."
    return "The nodes that it could use take no pods now."


def _constraint(finding: Finding) -> str:
    names = [f"the {one.kind} {one.name}" for one in finding.blockers[: amounts.NAMED]]
    if names:
        joined = (" and " if finding.evidence.get("drop") == "all" else " or ").join(names)
        return f"It is kept from nodes that could take it: without {joined} it would fit."
    if "topology_problem" in finding.evidence:
        return f"Flavor {finding.evidence['flavor']} of its queue {finding.evidence['topology_problem']}."
    if "taints" in finding.evidence:
        return f"It does not tolerate the taint {amounts.names(finding.evidence['taints'])}."
    return "Its selector, or a taint that it does not tolerate, keeps it from the nodes."


def _other(finding: Finding) -> str:
    """
    What is short beside free GPUs, with the numbers of a node where that is seen.

    >>> from analytics.why.reason import Source
    >>> told = {"resources": ("cpu",), "node": "n1", "device": "nvidia.com/gpu", "free_devices": 8,
    ...         "short_of": "cpu", "short_free": 12, "short_has": 128, "asked_each": 16}
    >>> _other(Finding(reason=Reason.OTHER_RESOURCE, source=Source.PLACEMENT, evidence=told))
    'Nodes with free GPUs lack CPUs: n1 has 8 GPUs free, but 12 of its 128 CPUs, and a pod asks 16.'
    """
    said = finding.evidence
    named = said.get("resources")
    lacking = (
        list(named)
        if isinstance(named, tuple)
        else [
            name.removeprefix("nodes_short_of_")
            for name in said
            if name.startswith("nodes_short_of_") and not name.endswith("/gpu")
        ]
    )
    words = amounts.names([amounts.LACKING.get(name, name) for name in lacking])
    told = f"Nodes with free GPUs lack {words or 'something else that it asks'}"
    if "node" not in said:
        return f"{told}."
    devices = amounts.amount(
        said["free_devices"], amounts.UNITS.get(str(said["device"]), str(said["device"]))
    )
    free = (
        f"at most {amounts.bare(said, 'short_free_at_most')}"
        if "short_free_at_most" in said
        else amounts.bare(said, "short_free")
    )
    of_all = f"{free} of its {amounts.beside(said, 'short_has')}"
    asks = f"a pod asks {amounts.bare(said, 'asked_each')}"
    return f"{told}: {said['node']} has {devices} free, but {of_all}, and {asks}."


def _fragmented(finding: Finding) -> str:
    said, unit = finding.evidence, amounts.unit(finding)
    if "topology" in said:
        return f"Free room is scattered: topology {said['topology']} does not fit all of its pods."
    if "free" not in said:
        return "Enough GPUs are free, but they are scattered."
    pods = said.get("pods", 1)
    wanted = f"{said['asked']} on one node" if pods == 1 else f"{said['asked']} for {pods} pods at once"
    scattered = f"{said['free']} {unit} are free where it may run, at most {said['largest_free']} on one node"
    return f"Free GPUs are scattered: {scattered}, and it needs {wanted}."


def _shortage(finding: Finding) -> str:
    said, unit = finding.evidence, amounts.unit(finding)
    if "free" in said:
        free = f"{said['free'] or 'none'} {'is' if said['free'] == 1 else 'are'} free where it may run"
        return f"It needs {amounts.amount(said['asked'], unit)}, and {free}."
    return "No node has enough free GPUs for it."


def _starting(finding: Finding) -> str:
    image = finding.evidence.get("image")
    if image:
        return f"It holds its GPUs and cannot start: the image {image} cannot be pulled."
    return "It has its GPUs, and its containers start."


def _unknown(finding: Finding) -> str:
    if finding.text:
        return f"Nobody says why in words that we know: {finding.text}"
    return "Nobody has said yet why it waits."


def _as_said(what: str, finding: Finding) -> str:
    return f"{what}: {finding.text}" if finding.text else f"{what}."


def _readable(finding: Finding) -> Finding:
    """The same with memory in GiB, which a quota counts in bytes."""
    if finding.evidence.get("resource") != amounts.MEMORY:
        return finding
    evidence = {
        name: amounts.gib(value) if name in _IN_BYTES and isinstance(value, int | float) else value
        for name, value in finding.evidence.items()
    }
    return replace(finding, evidence=evidence)


# What a queue or a namespace does not take it for.
_REFUSED: Final[Mapping[str, str]] = {
    "namespace": "Its queue does not take work of its namespace.",
    "resources": "Its pods ask more of a resource than they limit themselves to.",
    "limit_range": "Its pods ask what a LimitRange of its namespace does not allow.",
}
_SENTENCES: Mapping[Reason, Callable[[Finding], str]] = {
    Reason.HELD_BY_OWNER: _held,
    Reason.GATED: _gated,
    Reason.MISCONFIGURED: _misconfigured,
    Reason.NEVER_FITS: _never,
    Reason.BACKOFF: _backoff,
    Reason.ADMISSION_CHECK: _checking,
    Reason.PREEMPTING: _preempting,
    Reason.QUOTA_EXHAUSTED: _quota,
    Reason.BORROWING_LIMIT: _borrowing,
    Reason.COHORT_EXHAUSTED: _cohort,
    Reason.BEHIND_IN_QUEUE: _behind,
    Reason.GANG_INCOMPLETE: _gang,
    Reason.NODE_UNAVAILABLE: _nodes,
    Reason.CONSTRAINT: _constraint,
    Reason.OTHER_RESOURCE: _other,
    Reason.FRAGMENTATION: _fragmented,
    Reason.GPU_SHORTAGE: _shortage,
    Reason.STARTING: _starting,
    Reason.UNKNOWN: _unknown,
}
