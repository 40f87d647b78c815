"""ElasticQuotas of the scheduler-plugins project, as far as they are about GPUs."""

import msgspec

from collector.raw import Part, Quantities, RawObject
from collector.wording import created, description, quotas
from domain.facts import Fact, ObjectKind
from domain.objects import ElasticQuota
from domain.quantity import is_gpu_resource

KIND = ObjectKind.ELASTIC_QUOTA


class Spec(Part):
    min: Quantities | None = None
    max: Quantities | None = None


class RawElasticQuota(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawElasticQuota, observed_ms: int) -> list[Fact]:
    """The quota's creation and description."""
    creation = created(raw, KIND, observed_ms)
    body = ElasticQuota(least=quotas(_gpus(raw.spec.min)), most=quotas(_gpus(raw.spec.max)))
    return [creation, description(raw, creation, body)]


def _gpus(written: Quantities | None) -> Quantities:
    return {name: value for name, value in (written or {}).items() if is_gpu_resource(name)}
