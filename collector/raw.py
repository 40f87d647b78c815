"""
The parts that all objects of a cluster share, as they come over the wire.

Absent, null and empty are the same thing: every field has a default and nothing is required here;
a translator says what it cannot do without. Fields that nobody reads are skipped by the decoder.
What objects repeat word for word in each reading (labels, a pod's spec) is kept as written, and read
when it is asked for: mostly it was read before, and is remembered by its bytes.
No object refers to itself, so the garbage collector need not track them.
"""

from functools import lru_cache
from typing import Annotated

import msgspec

# Numbers of the API are 32 bits wide; a wider one is a broken object, and no column could hold it.
Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Strings = dict[str, str]
# A quantity is a string or a number; one that counts GPUs is checked when it is read.
Quantities = dict[str, str | int | float]
NOT_WRITTEN = msgspec.Raw()
_REMEMBERED = 1 << 12


class Part(msgspec.Struct, gc=False, rename="camel", kw_only=True):
    """A piece of an object. Names are the API's, in snake case."""


class OwnerReference(Part):
    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Metadata(Part):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int | None = None
    written_labels: msgspec.Raw = msgspec.field(default=NOT_WRITTEN, name="labels")
    written_annotations: msgspec.Raw = msgspec.field(default=NOT_WRITTEN, name="annotations")
    written_owners: msgspec.Raw = msgspec.field(default=NOT_WRITTEN, name="ownerReferences")

    @property
    def labels(self) -> Strings | None:
        """Its labels; raises msgspec.MsgspecError where they are none, as do the next two."""
        return _strings(bytes(self.written_labels))

    @property
    def annotations(self) -> Strings | None:
        """Its annotations."""
        return _strings(bytes(self.written_annotations))

    @property
    def owner_references(self) -> list[OwnerReference] | None:
        """Its owners."""
        return _owners(bytes(self.written_owners))


_STRINGS = msgspec.json.Decoder(Strings | None)
_OWNERS = msgspec.json.Decoder(list[OwnerReference] | None)


def strings(written: bytes | msgspec.Raw) -> Strings | None:
    """Labels or annotations, as `Metadata` keeps them written."""
    return _STRINGS.decode(written) if written else None


def references(written: bytes | msgspec.Raw) -> list[OwnerReference] | None:
    """Owners, as `Metadata` keeps them written."""
    return _OWNERS.decode(written) if written else None


_strings = lru_cache(_REMEMBERED)(strings)
_owners = lru_cache(_REMEMBERED)(references)


class RawObject(Part):
    """Any object; a kind's own struct adds what its translator reads."""

    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata = msgspec.field(default_factory=Metadata)


class Condition(Part):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class Taint(Part):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class ContainerResources(Part):
    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(Part):
    name: str | None = None
    restart_policy: str | None = None
    resources: ContainerResources | None = None


class SchedulingGate(Part):
    name: str | None = None


class SchedulingGroup(Part):
    pod_group_name: str | None = None


class PodResourceClaim(Part):
    """Names a claim, or a template from which one is made for the pod."""

    name: str | None = None
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodToleration(Part):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeRequirement(Part):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class NodeTerm(Part):
    match_expressions: list[NodeRequirement] | None = None
    match_fields: list[NodeRequirement] | None = None


class NodeTerms(Part):
    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(Part):
    required_during_scheduling_ignored_during_execution: NodeTerms | None = None


class Affinity(Part):
    node_affinity: NodeAffinity | None = None


class PodSpec(Part):
    """A pod's spec, live or in a template."""

    node_name: str | None = None
    node_selector: Strings | None = None
    affinity: Affinity | None = None
    tolerations: list[PodToleration] | None = None
    scheduler_name: str | None = None
    priority: Int | None = None
    priority_class_name: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: ContainerResources | None = None
    scheduling_group: SchedulingGroup | None = None
    resource_claims: list[PodResourceClaim] | None = None


class PodTemplate(Part):
    spec: PodSpec | None = None
