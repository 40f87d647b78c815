"""Kueue LocalQueues: which ClusterQueue they lead to."""

import msgspec

from collector.kueue.quota import FairSharing, fair_weight_milli
from collector.raw import Part, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import LocalQueue

KIND = ObjectKind.LOCAL_QUEUE


class Spec(Part):
    cluster_queue: str | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None


class RawLocalQueue(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawLocalQueue, observed_ms: int) -> list[Fact]:
    """The queue's creation and description."""
    creation = created(raw, KIND, observed_ms)
    body = LocalQueue(
        cluster_queue=raw.spec.cluster_queue or "",
        stop_policy=raw.spec.stop_policy or "None",
        weight_milli=fair_weight_milli(raw.spec.fair_sharing),
    )
    return [creation, description(raw, creation, body)]
