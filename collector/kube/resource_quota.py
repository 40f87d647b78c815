"""ResourceQuotas, as far as they limit GPUs."""

import msgspec
from msgspec import UNSET

from collector.raw import Part, Quantities, RawObject
from collector.wording import created, description, quota
from domain.facts import Fact, ObjectKind
from domain.objects import ResourceQuota
from domain.quantity import is_gpu_resource

KIND = ObjectKind.RESOURCE_QUOTA
# Extended resources can only be limited by what is requested.
_REQUESTS = "requests."


class Spec(Part):
    hard: Quantities | None = None
    scopes: list[str] | None = None
    scope_selector: dict[str, object] | None = None


class RawResourceQuota(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawResourceQuota, observed_ms: int) -> list[Fact]:
    """The quota's creation and description."""
    creation = created(raw, KIND, observed_ms)
    hard = {
        key.removeprefix(_REQUESTS): quota(value)
        for key, value in (raw.spec.hard or {}).items()
        if key.startswith(_REQUESTS) and is_gpu_resource(key.removeprefix(_REQUESTS))
    }
    scoped = bool(raw.spec.scopes or raw.spec.scope_selector) or UNSET
    return [creation, description(raw, creation, ResourceQuota(hard=hard, scoped=scoped))]
