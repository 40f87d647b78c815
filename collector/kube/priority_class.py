"""Kubernetes' priority classes."""

from collector.raw import Int, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import PriorityClass

KIND = ObjectKind.PRIORITY_CLASS


class RawPriorityClass(RawObject):
    value: Int | None = None
    global_default: bool | None = None


def facts(raw: RawPriorityClass, observed_ms: int) -> list[Fact]:
    """The class's creation and description; its value never changes under one uid."""
    creation = created(raw, KIND, observed_ms)
    body = PriorityClass(value=raw.value or 0, global_default=bool(raw.global_default))
    return [creation, description(raw, creation, body)]
