"""Namespaces: their labels, by which teams are told."""

from collector.raw import RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind
from domain.objects import Namespace

KIND = ObjectKind.NAMESPACE


class RawNamespace(RawObject):
    """A namespace; only its metadata is read."""


def facts(raw: RawNamespace, observed_ms: int) -> list[Fact]:
    """The namespace's creation and description."""
    creation = created(raw, KIND, observed_ms)
    return [creation, description(raw, creation, Namespace(labels=raw.metadata.labels or {}))]
