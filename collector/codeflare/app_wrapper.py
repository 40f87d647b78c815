"""AppWrappers: objects that are queued and started together."""

from typing import Any

import msgspec

from collector.job_wording import job_object, pod_set, priority_class_of
from collector.raw import Int, Part, PodTemplate, RawObject
from collector.wording import created, description, seen
from domain.facts import Fact, Moment, ObjectKind

KIND = ObjectKind.APP_WRAPPER


class WrappedPodSet(Part):
    """`path` leads to the pod template: `template.spec.template`."""

    replicas: Int | None = None
    path: str | None = None


class Component(Part):
    """`podSets` was called `declaredPodSets` for some versions; the controller infers missing ones."""

    pod_sets: list[WrappedPodSet] | None = None
    declared_pod_sets: list[WrappedPodSet] | None = None
    template: dict[str, Any] | None = None


class Spec(Part):
    suspend: bool | None = None
    components: list[Component] | None = None


class Status(Part):
    phase: str | None = None


class RawAppWrapper(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawAppWrapper, observed_ms: int) -> list[Fact]:
    """The phase that one reading of an AppWrapper shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    phase = [seen(creation, Moment.PHASE, state=raw.status.phase)] if raw.status.phase else []
    wrapped = [
        (written.replicas, _template(component.template, written.path or ""))
        for component in raw.spec.components or ()
        for written in component.pod_sets or component.declared_pod_sets or ()
    ]
    body = job_object(
        raw,
        suspend=raw.spec.suspend,
        pod_sets=(
            pod_set(f"{number}", 1 if replicas is None else replicas, template)
            for number, (replicas, template) in enumerate(wrapped)
        ),
        priority_class=priority_class_of(template for _, template in wrapped),
    )
    return [creation, *phase, description(raw, creation, body)]


def _template(wrapped: dict[str, Any] | None, path: str) -> PodTemplate | None:
    """The pod template at a path through the wrapped object; None where the path leads nowhere."""
    found: Any = {"template": wrapped}
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return msgspec.convert(found, PodTemplate) if isinstance(found, dict) else None
