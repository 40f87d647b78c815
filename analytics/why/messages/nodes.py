"""
What kube-scheduler and Volcano say of the nodes: `0/8 nodes are available: 5 Insufficient nvidia.com/gpu`.

Filters run in an order, and a node is counted where the first one refuses it: cordon, name, taints, selector
and affinity, ports, resources, volumes, spread, affinity between pods. So a node that one of the last refuses
has the resources, and a node that one of the first refuses may or may not have them. Volcano asks for the
number of pods before it asks for resources.

Source: `FitError` of kube-scheduler (pkg/scheduler/framework/types.go), `FitErrors` of Volcano
(pkg/scheduler/api/unschedule_info.go), versions 1.20 to 1.36.
"""

import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from analytics.why.reason import Finding, Reason, Source, Value
from domain.quantity import is_gpu_resource

_HEAD = re.compile(
    r"^(?:In hyperNode (?P<hyper_node>[^:]+): )?0/(?P<nodes>\d+) nodes are (?:un)?available: ?(?P<rest>.*)$",
    re.DOTALL,
)
# The histogram ends where another sentence begins that ends in the verdict on preemption.
_VERDICT = re.compile(r"(?:^|\.+ )(?:[^.]*, )?preemption: (?P<verdict>.*)$", re.DOTALL)
_ITEMS = re.compile(r"(?:^|, )(?=\d+ )")
_ITEM = re.compile(r"^(?P<count>\d+) (?P<why>.+)$", re.DOTALL)
_TAINT = re.compile(r"\{(?P<key>[^:}]*): ?(?P<value>[^}]*)\}")
_ALONE = re.compile(r"^(?:no nodes available to schedule pods|all nodes are unavailable)\.?$")
_CLASS = re.compile(r"device class (?P<name>\S+) does not exist")
_UNREADY_TAINTS = "node.kubernetes.io/"


class Why(StrEnum):
    """Why nodes refuse a pod; the value is how the evidence counts them."""

    GPU = "short_of_gpus"
    OTHER = "short_of_other"
    FULL = "full_of_pods"
    TAINT = "tainted"
    UNREADY = "unavailable"
    SELECTOR = "not_selected"
    BETWEEN_PODS = "kept_apart"
    VOLUME = "wrong_volume"
    CLAIM = "no_device_for_claim"
    NO_CLASS = "no_such_device_class"
    PORT = "port_taken"
    NOT_ASKED = "not_asked"
    ELSE = "other_reason"


# The first that is contained tells; the texts of all releases, see section 2.4 of the field guide.
_TEXTS: tuple[tuple[str, Why], ...] = (
    ("Too many pods", Why.OTHER),
    ("pod number exceeded", Why.FULL),
    ("exceed max volume count", Why.OTHER),
    ("enough free storage", Why.OTHER),
    ("were unschedulable", Why.UNREADY),
    ("had unknown conditions", Why.UNREADY),
    ("were not ready", Why.UNREADY),
    ("had untolerated taint", Why.TAINT),
    ("that the pod didn't tolerate", Why.TAINT),
    ("node affinity/selector", Why.SELECTOR),
    ("match node selector", Why.SELECTOR),
    ("scheduler-enforced node affinity", Why.SELECTOR),
    ("satisfy plugin(s) [NodeAffinity]", Why.SELECTOR),
    ("requested node name", Why.SELECTOR),
    ("required features", Why.SELECTOR),
    ("PersistentVolume's node affinity", Why.VOLUME),
    ("volume node affinity conflict", Why.VOLUME),
    ("available persistent volumes to bind", Why.VOLUME),
    ("available volume zone", Why.VOLUME),
    ("pod affinity", Why.BETWEEN_PODS),
    ("anti-affinity", Why.BETWEEN_PODS),
    ("topology spread", Why.BETWEEN_PODS),
    ("free ports", Why.PORT),
    ("does not exist", Why.NO_CLASS),
    ("allocate all claims", Why.CLAIM),
    ("resourceclaim", Why.CLAIM),
    ("resource claim", Why.CLAIM),
    ("NodeUnfitPod", Why.GPU),
    ("node unregister", Why.UNREADY),
)


def read(text: str) -> list[Finding]:
    """The findings in one text of this grammar; none where it is of another."""
    if _ALONE.match(text):
        return [_finding(Reason.NODE_UNAVAILABLE, {}, "Ask the operators: no node takes pods at all.")]
    head = _HEAD.match(text)
    if head is None:
        return []
    rest, verdict = _parted(head["rest"])
    counts, evidence = _counted(rest)
    if not counts:
        # A plugin refused the pod before it looked at any node: other readers know those texts.
        return []
    evidence = {"nodes": int(head["nodes"]), **evidence}
    if head["hyper_node"]:
        evidence["hyper_node"] = head["hyper_node"]
    found = _found(counts, int(head["nodes"]), evidence)
    if "terminating pod on the nominated node" in verdict:
        found.append(_preempting(evidence))
    return found


def refused_before(text: str) -> str:
    """
    The text of a plugin that refused the pod before any node was looked at; empty for all others.

    >>> refused_before("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    'pod has unbound immediate PersistentVolumeClaims'
    """
    head = _HEAD.match(text)
    if head is None:
        return ""
    rest, _ = _parted(head["rest"])
    return "" if _ITEM.match(rest) else rest.rstrip(".")


def _parted(rest: str) -> tuple[str, str]:
    """The histogram without its full stop, and the verdict on preemption."""
    verdict = _VERDICT.search(rest)
    body = rest[: verdict.start()] if verdict else rest
    return body.rstrip(". "), verdict["verdict"] if verdict else ""


def _counted(rest: str) -> tuple[Counter[Why], dict[str, Value]]:
    """Nodes by why they refuse, and the same as evidence with the names that the text has."""
    counts: Counter[Why] = Counter()
    named: Counter[str] = Counter()
    evidence: dict[str, Value] = {}
    taints: list[str] = []
    for part in _ITEMS.split(rest):
        item = _ITEM.match(part.strip())
        if item is None:
            continue
        count, text = int(item["count"]), item["why"]
        why = _why(text)
        if why is Why.TAINT and (taint := _TAINT.search(text)):
            if taint["key"].startswith(_UNREADY_TAINTS):
                why = Why.UNREADY
            else:
                taints.append(f"{taint['key']}={taint['value']}" if taint["value"] else taint["key"])
        if why in (Why.GPU, Why.OTHER):
            named[f"nodes_short_of_{_short_of(text)}"] += count
        else:
            named[f"nodes_{why}"] += count
        if why is Why.NO_CLASS and (device_class := _CLASS.search(text)):
            evidence["device_class"] = device_class["name"]
        counts[why] = max(counts[why], count) if why in (Why.GPU, Why.OTHER) else counts[why] + count
    if taints:
        evidence["taints"] = tuple(taints)
    return counts, {**named, **evidence}


def _why(text: str) -> Why:
    if text.startswith("Insufficient "):
        return Why.GPU if is_gpu_resource(_short_of(text)) else Why.OTHER
    return next((why for said, why in _TEXTS if said in text), Why.ELSE)


def _short_of(text: str) -> str:
    """
    The resource that is missing.

    >>> _short_of("Insufficient nvidia.com/gpu"), _short_of("Too many pods")
    ('nvidia.com/gpu', 'pods')
    """
    if text.startswith("Insufficient "):
        return text.removeprefix("Insufficient ").partition(" ")[0].rstrip(".,")
    if "pod" in text and "NodeUnfitPod" not in text:
        return "pods"
    return "gpus" if "NodeUnfitPod" in text else "storage"


def _found(counts: Counter[Why], nodes: int, evidence: Mapping[str, Value]) -> list[Finding]:
    found: list[Finding] = []
    if counts[Why.NO_CLASS]:
        remedy = "Name a device class that exists in the claim."
        found.append(_finding(Reason.MISCONFIGURED, evidence, remedy, exact=True))
    if counts[Why.BETWEEN_PODS] or counts[Why.VOLUME]:
        # Those nodes have the resources: these filters run after that of resources.
        remedy = "Relax the rules on where pods stand, or use a volume that these nodes reach."
        found.append(_finding(Reason.CONSTRAINT, evidence, remedy, exact=True))
    # Refusals for resources: a node may be short of several, and then counts for each.
    before = sum(counts[why] for why in (Why.TAINT, Why.UNREADY, Why.SELECTOR, Why.PORT, Why.FULL))
    after = sum(counts[why] for why in (Why.BETWEEN_PODS, Why.VOLUME, Why.CLAIM, Why.NO_CLASS, Why.ELSE))
    short = max(nodes - before - after, 0)
    if (counts[Why.OTHER] and short > counts[Why.GPU]) or counts[Why.FULL] == nodes:
        remedy = "Ask for less CPU and memory beside the GPUs, so that a node with free GPUs can take it."
        found.append(_finding(Reason.OTHER_RESOURCE, evidence, remedy, exact=True))
    if counts[Why.PORT]:
        remedy = "Do without the fixed port: it is taken on the nodes that would do."
        found.append(_finding(Reason.OTHER_RESOURCE, evidence, remedy, exact=True))
    if counts[Why.GPU] or counts[Why.CLAIM]:
        remedy = "Wait for GPUs to come free, or ask for fewer or for another model."
        found.append(_finding(Reason.GPU_SHORTAGE, evidence, remedy))
    elif not found:
        found.append(_kept_off(counts, evidence))
    return found


def _kept_off(counts: Counter[Why], evidence: Mapping[str, Value]) -> Finding:
    """No node had to be asked for resources: all are kept from it by what they or the pod say."""
    if counts[Why.TAINT] or counts[Why.SELECTOR]:
        remedy = "Compare the pod's node selector and tolerations with the labels and taints of the nodes."
        return _finding(Reason.CONSTRAINT, evidence, remedy)
    if counts[Why.UNREADY]:
        return _finding(
            Reason.NODE_UNAVAILABLE, evidence, "Wait until the nodes are back, or ask the operators."
        )
    return Finding(reason=Reason.UNKNOWN, source=Source.MESSAGE, evidence=evidence)


def _preempting(evidence: Mapping[str, Value]) -> Finding:
    remedy = "Nothing to do: pods of lower priority are leaving a node for it."
    return _finding(Reason.PREEMPTING, evidence, remedy, exact=True)


def _finding(reason: Reason, evidence: Mapping[str, Value], remedy: str, *, exact: bool = False) -> Finding:
    return Finding(
        reason=reason, source=Source.MESSAGE, evidence=evidence, remedy=remedy, is_coarse=not exact
    )
