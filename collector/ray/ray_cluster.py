"""RayClusters: made for a RayJob, or by hand and used until deleted."""

import msgspec

from collector.job_wording import job_object
from collector.raw import RawObject
from collector.ray.cluster_spec import ClusterSpec, pod_sets, priority_class
from collector.wording import created, description
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.RAY_CLUSTER


class RawRayCluster(RawObject):
    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)


def facts(raw: RawRayCluster, observed_ms: int) -> list[Fact]:
    """The creation and the description of a RayCluster; it has no end but its deletion."""
    creation = created(raw, KIND, observed_ms)
    body = job_object(
        raw,
        suspend=raw.spec.suspend,
        pod_sets=pod_sets(raw.spec),
        priority_class=priority_class(raw.spec),
    )
    return [creation, description(raw, creation, body)]
