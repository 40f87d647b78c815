"""
KAI's PodGroups: made for each workload by its pod grouper.

They have no phase. Why a group does not fit is told for each node pool, and stamped anew in each
scheduling session, so the stamp is not read.
"""

import msgspec

from collector.raw import Int, Part, RawObject
from collector.wording import created, description, owner, owners, seen
from domain.facts import Fact, Moment, ObjectKind, Transition
from domain.objects import PodGroup

KIND = ObjectKind.KAI_POD_GROUP


class Spec(Part):
    min_member: Int | None = None
    queue: str | None = None
    priority_class_name: str | None = None


class SchedulingCondition(Part):
    type: str | None = None
    node_pool: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class Status(Part):
    scheduling_conditions: list[SchedulingCondition] | None = None


class RawPodGroup(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawPodGroup, observed_ms: int) -> list[Fact]:
    """Why one reading of a PodGroup says that it does not fit, and its description."""
    creation = created(raw, KIND, observed_ms)
    body = PodGroup(
        # The pod grouper names the owner without calling it the controller.
        owner=owner(raw.metadata) or next(iter(owners(raw.metadata)), None),
        labels=raw.metadata.labels or {},
        min_member=raw.spec.min_member or 0,
        queue=raw.spec.queue or "",
        priority_class=raw.spec.priority_class_name or "",
    )
    conditions = [_condition(creation, written) for written in raw.status.scheduling_conditions or ()]
    return [creation, *conditions, description(raw, creation, body)]


def _condition(creation: Transition, written: SchedulingCondition) -> Transition:
    return seen(
        creation,
        Moment.CONDITION,
        subject=f"{written.type or ''}/{written.node_pool or ''}",
        state=written.status or "",
        reason=written.reason or "",
        detail=written.message or "",
    )
