"""CronJobs: who owns Jobs that come back."""

import msgspec

from collector.raw import Part, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import CronJob

KIND = ObjectKind.CRON_JOB


class Spec(Part):
    schedule: str | None = None


class RawCronJob(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawCronJob, observed_ms: int) -> list[Fact]:
    """The CronJob's creation and description."""
    creation = created(raw, KIND, observed_ms)
    return [creation, description(raw, creation, CronJob(schedule=raw.spec.schedule or ""))]
