"""TrainJobs: a runtime makes a JobSet of each, and decides which pods that has."""

import msgspec

from collector.job_wording import job_conditions, job_object
from collector.raw import Condition, Part, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.TRAIN_JOB


class Spec(Part):
    suspend: bool | None = None


class Status(Part):
    conditions: list[Condition] | None = None


class RawTrainJob(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawTrainJob, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of a TrainJob shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    body = job_object(raw, suspend=raw.spec.suspend)
    return [creation, *job_conditions(creation, raw.status.conditions), description(raw, creation, body)]
