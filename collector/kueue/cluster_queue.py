"""Kueue ClusterQueues: quotas, cohort and policies."""

import msgspec

from collector.kueue.quota import FairSharing, ResourceGroup, fair_weight_milli, flavor_quotas
from collector.raw import Part, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import ClusterQueue

KIND = ObjectKind.CLUSTER_QUEUE


class Preemption(Part):
    reclaim_within_cohort: str | None = None
    within_cluster_queue: str | None = None


class Spec(Part):
    """v1beta1 writes `cohort`, v1beta2 `cohortName`."""

    cohort: str | None = None
    cohort_name: str | None = None
    resource_groups: list[ResourceGroup] | None = None
    queueing_strategy: str | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    preemption: Preemption | None = None


class RawClusterQueue(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawClusterQueue, observed_ms: int) -> list[Fact]:
    """The queue's creation and description, with Kueue's defaults where nothing is written."""
    creation = created(raw, KIND, observed_ms)
    preemption = raw.spec.preemption or Preemption()
    body = ClusterQueue(
        cohort=raw.spec.cohort_name or raw.spec.cohort or "",
        quotas=flavor_quotas(raw.spec.resource_groups),
        strategy=raw.spec.queueing_strategy or "BestEffortFIFO",
        stop_policy=raw.spec.stop_policy or "None",
        weight_milli=fair_weight_milli(raw.spec.fair_sharing),
        reclaim_within_cohort=preemption.reclaim_within_cohort or "Never",
        within_cluster_queue=preemption.within_cluster_queue or "Never",
    )
    return [creation, description(raw, creation, body)]
