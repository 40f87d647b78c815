"""Volcano Queues: weights and limits."""

import msgspec

from collector.raw import Int, Part, Quantities, RawObject
from collector.wording import created, description, quotas
from domain.facts import Fact, ObjectKind
from domain.objects import VolcanoQueue

KIND = ObjectKind.VOLCANO_QUEUE


class Guarantee(Part):
    resource: Quantities | None = None


class Spec(Part):
    weight: Int | None = None
    parent: str | None = None
    reclaimable: bool | None = None
    capability: Quantities | None = None
    deserved: Quantities | None = None
    guarantee: Guarantee | None = None


class RawQueue(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawQueue, observed_ms: int) -> list[Fact]:
    """The queue's creation and description, with Volcano's defaults where nothing is written."""
    creation = created(raw, KIND, observed_ms)
    guarantee = raw.spec.guarantee or Guarantee()
    body = VolcanoQueue(
        weight=1 if raw.spec.weight is None else raw.spec.weight,
        parent=raw.spec.parent or "",
        reclaimable=raw.spec.reclaimable is not False,
        capability=quotas(raw.spec.capability),
        deserved=quotas(raw.spec.deserved),
        guarantee=quotas(guarantee.resource),
    )
    return [creation, description(raw, creation, body)]
