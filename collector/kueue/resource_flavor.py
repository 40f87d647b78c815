"""Kueue ResourceFlavors: which nodes a quota is for."""

import msgspec

from collector.kube.placement import tolerations_of
from collector.raw import Part, PodToleration, RawObject, Strings, Taint
from collector.wording import created, description, taints
from domain.facts import Fact, ObjectKind
from domain.objects import ResourceFlavor

KIND = ObjectKind.RESOURCE_FLAVOR


class Spec(Part):
    node_labels: Strings | None = None
    node_taints: list[Taint] | None = None
    tolerations: list[PodToleration] | None = None
    topology_name: str | None = None


class RawResourceFlavor(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawResourceFlavor, observed_ms: int) -> list[Fact]:
    """The flavor's creation and description."""
    creation = created(raw, KIND, observed_ms)
    body = ResourceFlavor(
        node_labels=raw.spec.node_labels or {},
        taints=taints(raw.spec.node_taints),
        topology=raw.spec.topology_name or "",
        tolerations=tolerations_of(raw.spec.tolerations),
    )
    return [creation, description(raw, creation, body)]
