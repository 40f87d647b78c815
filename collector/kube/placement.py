"""What a pod, live or in a template, wants of its node."""

from collections.abc import Iterable

from collector.raw import NodeTerm, PodSpec, PodToleration
from domain.placement import SYSTEM_TAINTS, Placement, Rule, Toleration


def placement_of(spec: PodSpec | None) -> Placement | None:
    """
    The node selector, the required node affinity and the tolerations; None where any untainted node will do.

    A term without any expression matches no node, as in Kubernetes.
    """
    if spec is None:
        return None
    of_node = spec.affinity.node_affinity if spec.affinity else None
    required = of_node.required_during_scheduling_ignored_during_execution if of_node else None
    terms = tuple(map(_rules, (required.node_selector_terms if required else None) or ()))
    tolerations = tolerations_of(spec.tolerations)
    if not (spec.node_selector or terms or tolerations):
        return None
    return Placement(labels=spec.node_selector or {}, terms=terms, tolerations=tolerations)


def tolerations_of(written: Iterable[PodToleration] | None) -> tuple[Toleration, ...]:
    """The tolerations, without those of taints that Kubernetes puts on nodes itself."""
    found = []
    for one in written or ():
        key = one.key or ""
        if not key.startswith(SYSTEM_TAINTS):
            effect, value = one.effect or "", one.value or ""
            found.append(Toleration(key=key, operator=one.operator or "Equal", value=value, effect=effect))
    return tuple(found)


def _rules(term: NodeTerm) -> tuple[Rule, ...]:
    rules = tuple(
        Rule(key=one.key or "", operator=one.operator or "", values=tuple(one.values or ()))
        for one in (*(term.match_expressions or ()), *(term.match_fields or ()))
    )
    return rules or (Rule(key="", operator="In"),)
