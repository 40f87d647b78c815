"""RayJobs: each try makes a RayCluster anew."""

import msgspec

from collector.job_wording import job_object
from collector.raw import Part, RawObject
from collector.ray.cluster_spec import ClusterSpec, pod_sets, priority_class
from collector.wording import created, description, instant_after_epoch, seen
from domain.facts import Fact, Moment, ObjectKind, Transition

KIND = ObjectKind.RAY_JOB
_ENDS = ("Complete", "Failed", "ValidationFailed")


class Spec(Part):
    suspend: bool | None = None
    ray_cluster_spec: ClusterSpec | None = None


class Status(Part):
    job_status: str | None = None
    job_deployment_status: str | None = None
    end_time: str | None = None


class RawRayJob(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawRayJob, observed_ms: int) -> list[Fact]:
    """The phase that one reading of a RayJob shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    body = job_object(
        raw,
        suspend=raw.spec.suspend,
        pod_sets=pod_sets(raw.spec.ray_cluster_spec),
        priority_class=priority_class(raw.spec.ray_cluster_spec),
    )
    return [creation, *_phase(raw.status, creation), description(raw, creation, body)]


def _phase(status: Status, creation: Transition) -> list[Transition]:
    phase, reason = status.job_deployment_status or "", status.job_status or ""
    if not phase:
        return []
    if phase == "Complete" and reason == "FAILED":
        phase = "Failed"  # KubeRay before 1.2 calls the deployment complete when Ray's job has failed
    at_ms = instant_after_epoch(status.end_time) if phase in _ENDS else None
    if at_ms is None:
        return [seen(creation, Moment.PHASE, state=phase, reason=reason)]
    return [
        Transition(
            uid=creation.uid,
            kind=KIND,
            moment=Moment.PHASE,
            at_ms=at_ms,
            observed_ms=creation.observed_ms,
            state=phase,
            reason=reason,
        )
    ]
