"""PodGroups of the scheduler-plugins project (coscheduling): phases."""

import msgspec

from collector.raw import Int, Part, RawObject
from collector.wording import created, description, owner, seen
from domain.facts import Fact, Moment, ObjectKind
from domain.objects import PodGroup

KIND = ObjectKind.PLUGIN_POD_GROUP


class Spec(Part):
    min_member: Int | None = None


class Status(Part):
    phase: str | None = None


class RawPodGroup(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawPodGroup, observed_ms: int) -> list[Fact]:
    """The phase that one reading of a PodGroup shows, and its description; it knows no queue."""
    creation = created(raw, KIND, observed_ms)
    phase = [seen(creation, Moment.PHASE, state=raw.status.phase)] if raw.status.phase else []
    body = PodGroup(
        owner=owner(raw.metadata),
        labels=raw.metadata.labels or {},
        min_member=raw.spec.min_member or 0,
        queue="",
        priority_class="",
    )
    return [creation, *phase, description(raw, creation, body)]
