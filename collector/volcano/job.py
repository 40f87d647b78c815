"""Volcano Jobs: phases, each with its stamp."""

import msgspec

from collector.kube.placement import placement_of
from collector.kube.requests import effective_gpu_requests
from collector.raw import Int, Part, PodTemplate, RawObject
from collector.wording import created, description, instant, owner, seen
from domain.facts import Fact, Moment, ObjectKind, Transition
from domain.objects import Resources, VolcanoJob
from domain.placement import Placement

KIND = ObjectKind.VOLCANO_JOB


class Task(Part):
    replicas: Int | None = None
    min_available: Int | None = None
    template: PodTemplate | None = None


class Spec(Part):
    min_available: Int | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    tasks: list[Task] | None = None


class State(Part):
    phase: str | None = None
    last_transition_time: str | None = None


class Status(Part):
    state: State | None = None


class RawVolcanoJob(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawVolcanoJob, observed_ms: int) -> list[Fact]:
    """The phase that one reading of a Volcano Job shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    return [creation, *_phase(raw, creation), description(raw, creation, _body(raw))]


def _phase(raw: RawVolcanoJob, creation: Transition) -> list[Transition]:
    state = raw.status.state
    if state is None or not state.phase:
        return []
    at_ms = instant(state.last_transition_time)
    if at_ms is None:
        return [seen(creation, Moment.PHASE, state=state.phase)]
    return [
        Transition(
            uid=creation.uid,
            kind=KIND,
            moment=Moment.PHASE,
            at_ms=at_ms,
            observed_ms=creation.observed_ms,
            state=state.phase,
        )
    ]


def _body(raw: RawVolcanoJob) -> VolcanoJob:
    replicas, least, gpu_requests = 0, 0, Resources()
    placements: list[Placement | None] = []
    for task in raw.spec.tasks or ():
        spec = task.template.spec if task.template else None
        count = 1 if task.replicas is None else task.replicas
        replicas += count
        least += count if task.min_available is None else task.min_available
        asked = effective_gpu_requests(spec)
        for resource, each in asked.items():
            gpu_requests[resource] = gpu_requests.get(resource, 0) + each * count
        placement = placement_of(spec)
        if asked and placement not in placements:
            placements.append(placement)
    return VolcanoJob(
        owner=owner(raw.metadata),
        labels=raw.metadata.labels or {},
        # As Volcano's webhook fills in what nobody wrote; a 0 is nothing written.
        min_available=raw.spec.min_available or least,
        replicas=replicas,
        gpu_requests=gpu_requests,
        queue=raw.spec.queue or "",
        priority_class=raw.spec.priority_class_name or "",
        # Of tasks that want different nodes nothing is said: their pods tell.
        placement=placements[0] if len(placements) == 1 else None,
    )
