"""PodGroups of Kubernetes itself (`scheduling.k8s.io`): gangs of kube-scheduler."""

import msgspec

from collector.raw import Condition, Int, Part, RawObject
from collector.wording import condition, created, description, owner
from domain.facts import Fact, ObjectKind
from domain.objects import PodGroup

KIND = ObjectKind.POD_GROUP


class Gang(Part):
    min_count: Int | None = None


class SchedulingPolicy(Part):
    """`basic` schedules the pods one by one."""

    gang: Gang | None = None


class Spec(Part):
    scheduling_policy: SchedulingPolicy | None = None
    priority_class_name: str | None = None


class Status(Part):
    conditions: list[Condition] | None = None


class RawPodGroup(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawPodGroup, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of a PodGroup shows, and its description; it knows no queue."""
    creation = created(raw, KIND, observed_ms)
    policy = raw.spec.scheduling_policy
    gang = policy.gang if policy else None
    body = PodGroup(
        owner=owner(raw.metadata),
        labels=raw.metadata.labels or {},
        min_member=(gang.min_count if gang else None) or 1,
        queue="",
        priority_class=raw.spec.priority_class_name or "",
    )
    conditions = [condition(creation, written) for written in raw.status.conditions or ()]
    return [creation, *conditions, description(raw, creation, body)]
