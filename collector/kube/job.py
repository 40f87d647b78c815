"""Jobs of batch/v1: suspended, resumed, complete, failed."""

import msgspec
from msgspec import UNSET

from collector.kube.placement import placement_of
from collector.kube.requests import effective_gpu_requests
from collector.raw import Condition, Int, Part, PodTemplate, RawObject
from collector.wording import condition, created, description, owner
from domain.facts import Fact, ObjectKind
from domain.objects import Job

KIND = ObjectKind.JOB
_CONDITIONS = ("Suspended", "Complete", "Failed")


class Spec(Part):
    suspend: bool | None = None
    parallelism: Int | None = None
    completions: Int | None = None
    active_deadline_seconds: Int | None = None
    template: PodTemplate | None = None


class Status(Part):
    conditions: list[Condition] | None = None


class RawJob(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawJob, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of a Job shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    conditions = [
        condition(creation, written)
        for written in raw.status.conditions or ()
        if written.type in _CONDITIONS and (written.status == "True" or written.type == "Suspended")
    ]
    return [creation, *conditions, description(raw, creation, _body(raw))]


def _body(raw: RawJob) -> Job:
    labels = raw.metadata.labels or {}
    template = raw.spec.template.spec if raw.spec.template else None
    return Job(
        owner=owner(raw.metadata),
        labels=labels,
        suspend=bool(raw.spec.suspend),
        parallelism=1 if raw.spec.parallelism is None else raw.spec.parallelism,
        completions=raw.spec.completions,
        gpu_requests_per_pod=effective_gpu_requests(template),
        priority_class=(template.priority_class_name if template else None) or "",
        queue=labels.get("kueue.x-k8s.io/queue-name", ""),
        placement=placement_of(template),
        most_seconds=UNSET if raw.spec.active_deadline_seconds is None else raw.spec.active_deadline_seconds,
    )
