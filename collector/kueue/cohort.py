"""Kueue Cohorts: the tree in which ClusterQueues lend and borrow."""

import msgspec

from collector.kueue.quota import FairSharing, ResourceGroup, fair_weight_milli, flavor_quotas
from collector.raw import Part, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import Cohort

KIND = ObjectKind.COHORT


class Spec(Part):
    parent_name: str | None = None
    resource_groups: list[ResourceGroup] | None = None
    fair_sharing: FairSharing | None = None


class RawCohort(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawCohort, observed_ms: int) -> list[Fact]:
    """The cohort's creation and description."""
    creation = created(raw, KIND, observed_ms)
    body = Cohort(
        parent=raw.spec.parent_name or "",
        quotas=flavor_quotas(raw.spec.resource_groups),
        weight_milli=fair_weight_milli(raw.spec.fair_sharing),
    )
    return [creation, description(raw, creation, body)]
