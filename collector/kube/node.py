"""Nodes: their GPUs, taints and readiness."""

import msgspec
from msgspec import UNSET

from collector.raw import Condition, Part, Quantities, RawObject, Taint
from collector.wording import created, description, gpu_counts, other_milli, taints
from domain.facts import Fact, ObjectKind
from domain.objects import Node

KIND = ObjectKind.NODE


class Spec(Part):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class Status(Part):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None


class RawNode(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawNode, observed_ms: int) -> list[Fact]:
    """The node's creation and description; it changes by descriptions only."""
    creation = created(raw, KIND, observed_ms)
    ready = (written.status for written in raw.status.conditions or () if written.type == "Ready")
    body = Node(
        labels=raw.metadata.labels or {},
        gpu_capacity=gpu_counts(raw.status.capacity),
        gpu_allocatable=gpu_counts(raw.status.allocatable),
        unschedulable=bool(raw.spec.unschedulable),
        ready=next(ready, None) or "",
        taints=taints(raw.spec.taints),
        other_allocatable=other_milli(raw.status.allocatable) or UNSET,
    )
    return [creation, description(raw, creation, body)]
