"""Who a workload is: the attributes by which figures are kept apart, and what it asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from analytics.evictions import SLICE_REPLACED
from analytics.history import Catalog, History, WorkloadFacts
from analytics.requests import gang_size, requested_micro_gpus
from domain import objects
from domain.facts import Moment, ObjectKind, Transition
from domain.tenant import Subject, Tenancy
from domain.workload import Life

_LABELLED = (
    objects.Workload,
    objects.PodGroup,
    objects.Job,
    objects.VolcanoJob,
    objects.JobObject,
    objects.Pod,
)


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What a workload's attributes depend on beside its own objects."""

    namespaces: dict[str, list[History]] = field(default_factory=dict)
    local_queues: dict[tuple[str, str], str] = field(default_factory=dict)

    def namespace_labels(self, namespace: str, at_ms: int) -> Mapping[str, str]:
        """The labels of the namespace of that name, as they were at that instant."""
        labels: Mapping[str, str] = {}
        for history in self.namespaces.get(namespace, []):
            for described in history.descriptions:
                if isinstance(described.body, objects.Namespace) and (
                    described.from_ms <= at_ms or not labels
                ):
                    labels = described.body.labels
        return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Portrait:
    """A workload's attributes; `requested_micro_gpus` is None where it cannot be known."""

    kind: str
    namespace: str
    name: str
    job_uid: str
    team: str
    user: str
    project: str
    queue: str
    priority_class: str
    service_class: str
    gpu_model: str
    gang_size: int
    requested_micro_gpus: int | None


def portrait(facts: WorkloadFacts, life: Life, *, around: Surroundings, tenancy: Tenancy) -> Portrait:
    """
    Describe a workload as it was submitted; a later edit changes no earlier answer.

    The kind and name are those of the user's job object, not of what a scheduler made from it.
    """
    kind, name, namespace, job_uid = _user_object(facts)
    queue = _queue(facts, namespace, around)
    priority_class = _priority_class(facts)
    subject = Subject(
        namespace=namespace,
        namespace_labels=around.namespace_labels(namespace, life.submitted_ms),
        labels=_labels(facts),
        queue=queue,
        priority_class=priority_class,
    )
    at_ms = life.submitted_ms
    models = [holding.gpu_model for holding in life.holdings if holding.gpu_model]
    return Portrait(
        kind=kind,
        namespace=namespace,
        name=name,
        job_uid=job_uid,
        team=tenancy.team(subject, at_ms),
        user=tenancy.user(subject, at_ms),
        project=tenancy.project(subject, at_ms),
        queue=queue,
        priority_class=priority_class,
        service_class=tenancy.service_class(subject, at_ms),
        gpu_model=models[0] if models else "",
        gang_size=gang_size(facts),
        requested_micro_gpus=requested_micro_gpus(facts),
    )


def reservations(history: History, catalog: Catalog) -> list[tuple[str, int | None, int, int | None]]:
    """
    Stretches of reserved quota of a Kueue Workload.

    Returns:
        Rows of flavor, micro-GPU, start_ms, end_ms; the end is None while quota stays reserved.
        Kueue leaves the admission in the status of a finished Workload; its quota is free.
    """
    over = [fact.at_ms for fact in history.transitions if gives_quota_back(fact)]
    last_ms = min(over) if over else None
    rows: list[tuple[str, int | None, int, int | None]] = []
    following = [described.from_ms for described in history.descriptions[1:]]
    for described, next_ms in zip(history.descriptions, [*following, None], strict=True):
        body = described.body
        if not isinstance(body, objects.Workload):
            continue
        known_ends = [end for end in (next_ms, last_ms) if end is not None]
        end_ms = min(known_ends) if known_ends else None
        if end_ms is not None and end_ms <= described.from_ms:
            continue
        for flavor, resources in body.reserved.items():
            before = rows[-1] if rows else None
            quantity = catalog.micro_gpus(resources, None)
            if before and before[:2] == (flavor, quantity) and before[3] == described.from_ms:
                rows[-1] = (flavor, quantity, before[2], end_ms)
            else:
                rows.append((flavor, quantity, described.from_ms, end_ms))
    return rows


def gives_quota_back(fact: Transition) -> bool:
    """Whether a Workload has no quota from then on, whatever its status still says."""
    if fact.moment is Moment.CONDITION and fact.state == "True":
        replaced = fact.subject == "Evicted" and fact.reason == SLICE_REPLACED
        return fact.subject == "Finished" or replaced
    return fact.moment is Moment.GONE


def _user_object(facts: WorkloadFacts) -> tuple[str, str, str, str]:
    if facts.top_jobs:
        job = facts.top_jobs[0]
        return job.kind, job.name, job.namespace, job.uid
    if facts.queueing:
        top = facts.queueing[0]
        body = top.latest
        owners: tuple[objects.Owner, ...] = ()
        if isinstance(body, objects.Workload):
            owners = body.owners
        elif isinstance(body, objects.PodGroup) and body.owner is not None:
            owners = (body.owner,)
        if len(owners) == 1:
            return owners[0].kind, owners[0].name, top.namespace, owners[0].uid
        return ("PodGroup" if owners else top.kind), top.name, top.namespace, ""
    pod = facts.pods[0]
    body = pod.latest
    if pod.uid != facts.uid and isinstance(body, objects.Pod) and body.owner is not None:
        return body.owner.kind, body.owner.name, pod.namespace, body.owner.uid
    return ObjectKind.POD, pod.name, pod.namespace, ""


def _queue(facts: WorkloadFacts, namespace: str, around: Surroundings) -> str:
    for history in facts.queueing:
        body = history.original
        if isinstance(body, objects.Workload):
            local = around.local_queues.get((namespace, body.local_queue), "")
            served = [
                d.body.cluster_queue for d in history.descriptions if isinstance(d.body, objects.Workload)
            ]
            return next((queue for queue in reversed(served) if queue), local or body.local_queue)
        if isinstance(body, objects.PodGroup):
            return body.queue
    for history in (*facts.top_jobs, *facts.jobs):
        body = history.original
        if isinstance(body, objects.JobBody) and body.queue:
            return around.local_queues.get((namespace, body.queue), body.queue)
    pods = (history.original for history in facts.pods)
    return next((body.queue for body in pods if isinstance(body, objects.Pod) and body.queue), "")


def _priority_class(facts: WorkloadFacts) -> str:
    names: list[str] = []
    for history in (*facts.queueing, *facts.top_jobs, *facts.jobs, *facts.pods):
        body = history.original
        if isinstance(body, _LABELLED):
            names.append(body.priority_class)
    return next(filter(None, names), "")


def _labels(facts: WorkloadFacts) -> dict[str, str]:
    """Labels of the pods, over them those of the queueing object and of the job."""
    labels: dict[str, str] = {}
    for history in (*facts.pods[:1], *facts.queueing, *facts.jobs, *facts.top_jobs):
        body = history.original
        if isinstance(body, _LABELLED):
            labels |= body.labels
    return labels
