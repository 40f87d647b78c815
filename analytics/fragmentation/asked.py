"""The shapes behind fragmentation: pods and devices that a workload asks, devices that a node has."""

from collections import Counter
from collections.abc import Iterable

from analytics.history import Catalog, History, WorkloadFacts
from analytics.requests import declared_pod_sets, jobs_of, outside_jobs
from domain import objects
from domain.facts import Moment, ObjectKind
from domain.quantity import is_gpu_resource


def shape_rows(facts: WorkloadFacts) -> list[dict[str, object]]:
    """
    What a workload asked for at its submission, pod by pod.

    Returns:
        Rows of part, resource, pods, devices: each of `pods` pods asks `devices` of the resource.
        A part with two resources has two rows. Pods without a GPU have none.
    """
    counted: Counter[frozenset[tuple[str, int]]] = Counter()
    for pods, resources in _parts(facts):
        gpus = frozenset((name, n) for name, n in resources.items() if is_gpu_resource(name) and n > 0)
        if gpus and pods > 0:
            counted[gpus] += pods
    return [
        {"part": part, "resource": resource, "pods": pods, "devices": devices}
        for part, (gpus, pods) in enumerate(sorted(counted.items(), key=lambda item: sorted(item[0])))
        for resource, devices in sorted(gpus)
    ]


def pod_rows(facts: WorkloadFacts) -> list[dict[str, object]]:
    """Rows of pod_uid, resource, devices: what each of its pods asks."""
    return [
        {"pod_uid": pod.uid, "resource": resource, "devices": devices}
        for pod in facts.pods
        if isinstance(pod.latest, objects.Pod)
        for resource, devices in sorted(pod.latest.gpu_requests.items())
        if is_gpu_resource(resource) and devices > 0
    ]


def node_rows(history: History) -> list[dict[str, object]]:
    """
    Stretches of a node's devices; descriptions that change nothing of a resource are merged.

    Returns:
        Rows of node, gpu_model, resource, replicas, start_ms, end_ms, capacity, allocatable, schedulable;
        the end is None while it lasts.
    """
    if history.kind is not ObjectKind.NODE:
        return []
    gone = history.first(Moment.GONE)
    catalog = Catalog.of([history])
    rows: list[dict[str, object]] = []
    open_rows: dict[str, dict[str, object]] = {}
    for described in history.descriptions:
        body = described.body
        if not isinstance(body, objects.Node):
            continue
        stretch = catalog.at(history.name, described.from_ms)
        says = {
            resource: {
                "node": history.name,
                "gpu_model": stretch.model if stretch else "",
                "resource": resource,
                "replicas": stretch.replicas if stretch else 1,
                "capacity": body.gpu_capacity.get(resource, 0),
                "allocatable": body.gpu_allocatable.get(resource, 0),
                "schedulable": body.ready == "True" and not body.unschedulable,
            }
            for resource in sorted({*body.gpu_capacity, *body.gpu_allocatable})
            if is_gpu_resource(resource)
        }
        for resource in open_rows.keys() | says.keys():
            before, now = open_rows.get(resource), says.get(resource)
            if before and now and all(before[name] == value for name, value in now.items()):
                continue
            if before:
                before["end_ms"] = described.from_ms
                del open_rows[resource]
            if now:
                open_rows[resource] = {**now, "start_ms": described.from_ms, "end_ms": None}
                rows.append(open_rows[resource])
    for row in open_rows.values():
        row["end_ms"] = gone.at_ms if gone else None
    return rows


def _parts(facts: WorkloadFacts) -> Iterable[tuple[int, objects.Resources]]:
    """Pods and what each asks, by the same precedence as the workload's whole request."""
    for history in facts.queueing:
        body = history.original
        if isinstance(body, objects.Workload) and body.pod_sets:
            return [(part.count, part.gpu_requests) for part in body.pod_sets]
    for history in facts.jobs:
        body = history.original
        if isinstance(body, objects.VolcanoJob):
            return _of_volcano(body, facts)
    declared = declared_pod_sets(facts)
    if declared:
        return [(part.count, part.gpu_requests) for part in declared]
    in_jobs = [(max(job.parallelism, 1), job.gpu_requests_per_pod) for job in jobs_of(facts)]
    return in_jobs + [(1, pod.latest.gpu_requests) for pod in outside_jobs(facts)
                      if isinstance(pod.latest, objects.Pod)]  # fmt: skip


def _of_volcano(body: objects.VolcanoJob, facts: WorkloadFacts) -> Iterable[tuple[int, objects.Resources]]:
    """Its pods; tasks of unequal pods are told apart by the pods that there are."""
    pods = max(body.replicas, 1)
    if all(count % pods == 0 for count in body.gpu_requests.values()):
        return [(pods, {name: count // pods for name, count in body.gpu_requests.items()})]
    newest = {pod.name: pod.latest for pod in facts.pods if isinstance(pod.latest, objects.Pod)}
    return [(1, pod.gpu_requests) for pod in newest.values()]
