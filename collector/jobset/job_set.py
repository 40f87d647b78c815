"""JobSets: several Jobs that start, fail and end together."""

import msgspec

from collector.job_wording import job_conditions, job_object, pod_set, priority_class_of
from collector.raw import Condition, Int, Part, PodTemplate, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import PodSet

KIND = ObjectKind.JOB_SET


class JobSpec(Part):
    parallelism: Int | None = None
    template: PodTemplate | None = None


class JobTemplate(Part):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


class ReplicatedJob(Part):
    name: str | None = None
    replicas: Int | None = None
    template: JobTemplate = msgspec.field(default_factory=JobTemplate)


class Spec(Part):
    suspend: bool | None = None
    replicated_jobs: list[ReplicatedJob] | None = None


class Status(Part):
    conditions: list[Condition] | None = None


class RawJobSet(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawJobSet, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of a JobSet shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    replicated = raw.spec.replicated_jobs or ()
    body = job_object(
        raw,
        suspend=raw.spec.suspend,
        pod_sets=map(_pod_set, replicated),
        priority_class=priority_class_of(job.template.spec.template for job in replicated),
    )
    return [creation, *job_conditions(creation, raw.status.conditions), description(raw, creation, body)]


def _pod_set(job: ReplicatedJob) -> PodSet:
    jobs = 1 if job.replicas is None else job.replicas
    each = 1 if job.template.spec.parallelism is None else job.template.spec.parallelism
    return pod_set(job.name, jobs * each, job.template.spec.template)
