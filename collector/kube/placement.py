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
    terms = tuple(_rules(term) for term in (required.node_selector_terms if required else None) or ())
    found = Placement(
        labels=spec.node_selector or {}, terms=terms, tolerations=tolerations_of(spec.tolerations)
    )
    return None if found == Placement() else found


def tolerations_of(written: Iterable[PodToleration] | None) -> tuple[Toleration, ...]:
    """The tolerations, without those of taints that Kubernetes puts on nodes itself."""
    return tuple(
        Toleration(
            key=one.key or "",
            operator=one.operator or "Equal",
            value=one.value or "",
            effect=one.effect or "",
        )
        for one in written or ()
        if not (one.key or "").startswith(SYSTEM_TAINTS)
    )


def _rules(term: NodeTerm) -> tuple[Rule, ...]:
    rules = tuple(
        Rule(key=one.key or "", operator=one.operator or "", values=tuple(one.values or ()))
        for one in (*(term.match_expressions or ()), *(term.match_fields or ()))
    )
    return rules or (Rule(key="", operator="In"),)
