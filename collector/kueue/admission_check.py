"""Kueue AdmissionChecks: who has a say before a Workload is admitted, and whether it can."""

import msgspec

from collector.raw import Condition, Part, RawObject
from collector.wording import condition, created, description
from domain.facts import Fact, ObjectKind
from domain.objects import AdmissionCheck

KIND = ObjectKind.ADMISSION_CHECK


class Spec(Part):
    controller_name: str | None = None


class Status(Part):
    conditions: list[Condition] | None = None


class RawAdmissionCheck(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawAdmissionCheck, observed_ms: int) -> list[Fact]:
    """Whether one reading of a check says that it is active, and its description."""
    creation = created(raw, KIND, observed_ms)
    conditions = [
        condition(creation, written) for written in raw.status.conditions or () if written.type == "Active"
    ]
    body = AdmissionCheck(controller=raw.spec.controller_name or "")
    return [creation, *conditions, description(raw, creation, body)]
