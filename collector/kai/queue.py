"""KAI's Queues: what each deserves of the GPUs, and its limit."""

import msgspec

from collector.raw import Int, Part, RawObject
from collector.wording import created, description, quota, weight_milli
from domain.facts import Fact, ObjectKind
from domain.objects import KaiQueue
from domain.quantity import Quota

KIND = ObjectKind.KAI_QUEUE
_UNLIMITED = -1


class Share(Part):
    """Of one resource; GPUs are counted in whole cards and parts of them."""

    quota: float | None = None
    limit: float | None = None
    over_quota_weight: float | None = None


class Shares(Part):
    gpu: Share | None = None


class Spec(Part):
    parent_queue: str | None = None
    priority: Int | None = None
    resources: Shares | None = None


class RawKaiQueue(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawKaiQueue, observed_ms: int) -> list[Fact]:
    """The queue's creation and description."""
    creation = created(raw, KIND, observed_ms)
    gpu = (raw.spec.resources.gpu if raw.spec.resources else None) or Share()
    body = KaiQueue(
        parent=raw.spec.parent_queue or "",
        priority=raw.spec.priority,
        quota=kai_quota(gpu.quota),
        limit=kai_quota(gpu.limit),
        over_quota_weight_milli=weight_milli(gpu.over_quota_weight),
    )
    return [creation, description(raw, creation, body)]


def kai_quota(written: float | None) -> Quota:
    """
    A number of KAI's, which is unlimited at -1.

    >>> kai_quota(-1).kind.value, kai_quota(0.5).milli
    ('unlimited', 500)
    """
    return Quota.unlimited() if written == _UNLIMITED else quota(written)
