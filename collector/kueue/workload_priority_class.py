"""Kueue's own priority classes; they order Workloads and have nothing to do with pod priority."""

from collector.raw import Int, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import PriorityClass

KIND = ObjectKind.WORKLOAD_PRIORITY_CLASS


class RawWorkloadPriorityClass(RawObject):
    value: Int | None = None


def facts(raw: RawWorkloadPriorityClass, observed_ms: int) -> list[Fact]:
    """The class's creation and description."""
    creation = created(raw, KIND, observed_ms)
    return [creation, description(raw, creation, PriorityClass(value=raw.value or 0))]
