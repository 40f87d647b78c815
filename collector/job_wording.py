"""How translators of job objects word what those have in common."""

from collections.abc import Iterable

from collector.kube.placement import placement_of
from collector.kube.requests import effective_gpu_requests
from collector.raw import Condition, PodTemplate, RawObject
from collector.wording import condition, owner
from domain.facts import Transition
from domain.objects import JobObject, PodSet

# Each project has its own word for an end.
_ENDS = ("Complete", "Completed", "Succeeded", "Failed")


def job_conditions(creation: Transition, conditions: list[Condition] | None) -> list[Transition]:
    """Suspended, true and false, and the end when it has come."""
    return [
        condition(creation, written)
        for written in conditions or ()
        if written.type == "Suspended" or (written.type in _ENDS and written.status == "True")
    ]


def job_object(
    raw: RawObject,
    *,
    suspend: bool | None,
    pod_sets: Iterable[PodSet] = (),
    priority_class: str | None = None,
) -> JobObject:
    """The description of a job object."""
    labels = raw.metadata.labels or {}
    return JobObject(
        owner=owner(raw.metadata),
        labels=labels,
        suspend=bool(suspend),
        pod_sets=tuple(pod_sets),
        priority_class=priority_class or "",
        queue=labels.get("kueue.x-k8s.io/queue-name", ""),
    )


def pod_set(
    name: str | None, count: int, template: PodTemplate | None, *, min_count: int | None = None
) -> PodSet:
    """`count` pods of one template."""
    spec = template.spec if template else None
    return PodSet(
        name=name or "",
        count=count,
        min_count=min_count,
        gpu_requests=effective_gpu_requests(spec),
        placement=placement_of(spec),
    )


def priority_class_of(templates: Iterable[PodTemplate | None]) -> str:
    """The priority class of the first template that names one."""
    names = (template.spec.priority_class_name for template in templates if template and template.spec)
    return next((name for name in names if name), "")
