"""
Kueue Workloads: each edge of each condition.

Kueue keeps only the latest edge of a condition and overwrites an eviction when it reserves quota
again; its count of evictions tells how many edges nobody saw.
"""

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from collector.kube.placement import placement_of
from collector.kube.requests import effective_gpu_requests, effective_other_requests
from collector.raw import Condition, Int, Part, PodTemplate, Quantities, RawObject, Strings
from collector.wording import condition, created, description, gpu_counts, other_milli, owners
from domain.facts import Fact, ObjectKind
from domain.objects import PodSet, Resources, Workload

KIND = ObjectKind.WORKLOAD
_JOB_UID = "kueue.x-k8s.io/job-uid"
_SLICE_OF = "kueue.x-k8s.io/workload-slice-replacement-for"
_VARIANT_OF = "kueue.x-k8s.io/concurrent-admission-parent"


class RawPodSet(Part):
    name: str | None = None
    count: Int | None = None
    min_count: Int | None = None
    template: PodTemplate | None = None


class PriorityClassRef(Part):
    name: str | None = None


class Spec(Part):
    """v1beta1 names the priority class, v1beta2 refers to it."""

    queue_name: str | None = None
    priority: Int | None = None
    priority_class_name: str | None = None
    priority_class_ref: PriorityClassRef | None = None
    active: bool | None = None
    maximum_execution_time_seconds: Int | None = None
    pod_sets: list[RawPodSet] | None = None


class PodSetAssignment(Part):
    name: str | None = None
    count: Int | None = None
    flavors: Strings | None = None
    resource_usage: Quantities | None = None


class Admission(Part):
    cluster_queue: str | None = None
    pod_set_assignments: list[PodSetAssignment] | None = None


class CheckState(Part):
    name: str | None = None
    state: str | None = None


class EvictionCount(Part):
    reason: str | None = None
    count: Int | None = None


class SchedulingStats(Part):
    evictions: list[EvictionCount] | None = None


class ReclaimablePod(Part):
    name: str | None = None
    count: Int | None = None


class Status(Part):
    conditions: list[Condition] | None = None
    admission: Admission | None = None
    admission_checks: list[CheckState] | None = None
    scheduling_stats: SchedulingStats | None = None
    reclaimable_pods: list[ReclaimablePod] | None = None
    cluster_name: str | None = None


class RawWorkload(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawWorkload, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of a Workload shows, true and false, and its description."""
    creation = created(raw, KIND, observed_ms)
    evictions = _evictions(raw.status)
    evicted = sum(evictions.values()) if raw.status.scheduling_stats else None
    conditions = [
        condition(
            creation,
            written,
            amount=evicted if written.type == "Evicted" and written.status == "True" else None,
        )
        for written in raw.status.conditions or ()
    ]
    return [creation, *conditions, description(raw, creation, _body(raw, evictions))]


def _evictions(status: Status) -> dict[str, int]:
    counts: dict[str, int] = {}
    stats = status.scheduling_stats
    for row in (stats.evictions if stats else None) or ():
        counts[row.reason or ""] = counts.get(row.reason or "", 0) + (row.count or 0)
    return counts


def _body(raw: RawWorkload, evictions: dict[str, int]) -> Workload:
    spec, admission = raw.spec, raw.status.admission
    labels = raw.metadata.labels or {}
    by_reference = spec.priority_class_ref.name if spec.priority_class_ref else None
    return Workload(
        owners=owners(raw.metadata),
        job_uid=labels.get(_JOB_UID, ""),
        labels=labels,
        local_queue=spec.queue_name or "",
        cluster_queue=(admission.cluster_queue if admission else None) or "",
        active=spec.active is not False,
        priority=spec.priority or 0,
        priority_class=by_reference or spec.priority_class_name or "",
        pod_sets=tuple(_pod_set(pod_set) for pod_set in spec.pod_sets or ()),
        reserved=_reserved(raw),
        checks={check.name or "": check.state or "" for check in raw.status.admission_checks or ()},
        evictions=evictions,
        slice_of=(raw.metadata.annotations or {}).get(_SLICE_OF, ""),
        variant_of=labels.get(_VARIANT_OF, ""),
        dispatched_to=raw.status.cluster_name or "",
        other_reserved=_reserved(raw, other_milli) or UNSET,
        most_seconds=UNSET
        if spec.maximum_execution_time_seconds is None
        else spec.maximum_execution_time_seconds,
    )


def _pod_set(written: RawPodSet) -> PodSet:
    spec = written.template.spec if written.template else None
    return PodSet(
        name=written.name or "",
        count=1 if written.count is None else written.count,
        min_count=written.min_count,
        gpu_requests=effective_gpu_requests(spec),
        placement=placement_of(spec),
        other_requests=effective_other_requests(spec),
    )


def _reserved(
    raw: RawWorkload, amounts: Callable[[Quantities | None], Resources] = gpu_counts
) -> dict[str, Resources]:
    """
    Totals by flavor and resource, of GPUs by default; `resourceUsage` is already a total over the pods.

    Kueue leaves it as it was admitted, and gives the quota of pods that are done back all the same. Of a
    workload that is admitted again after some pods were done, the assignment counts the others only. So
    what is reserved is for the pods of the assignment, but never for more than are not done: Kueue's
    `totalRequestsFromAdmission` (pkg/workload).
    """
    admission = raw.status.admission
    pods = {one.name: 1 if one.count is None else one.count for one in raw.spec.pod_sets or ()}
    done = {one.name: one.count or 0 for one in raw.status.reclaimable_pods or ()}
    reserved: dict[str, Resources] = {}
    for assignment in (admission.pod_set_assignments if admission else None) or ():
        flavors, granted = assignment.flavors or {}, assignment.count or 0
        undone = max(0, pods.get(assignment.name, granted) - done.get(assignment.name, 0))
        for resource, whole in amounts(assignment.resource_usage).items():
            count = whole * min(granted, undone) // granted if granted else whole
            if not count:
                continue
            of_flavor = reserved.setdefault(flavors.get(resource, ""), {})
            of_flavor[resource] = of_flavor.get(resource, 0) + count
    return reserved
