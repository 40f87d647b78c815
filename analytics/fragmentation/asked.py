"""The shapes behind fragmentation: pods and devices that a workload asks, devices that a node has."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from analytics import other_resources
from analytics.claims import claimed_resources
from analytics.fragmentation.places import written, written_of_node
from analytics.history import History, WorkloadFacts
from analytics.offers import Offer, first_sight, offers
from analytics.requests import declared_pod_sets, jobs_of, outside_jobs
from domain import objects
from domain.facts import Moment
from domain.placement import Placement
from domain.quantity import is_gpu_resource


class _Part(NamedTuple):
    """So many pods that ask alike, `others` beside GPUs, and want the same of their nodes."""

    pods: int
    resources: objects.Resources
    placement: Placement | None
    others: other_resources.Told = None


def shape_rows(facts: WorkloadFacts) -> list[dict[str, object]]:
    """
    What a workload asked for at its submission, pod by pod; what its pods claim as devices included.

    Returns:
        Rows of part, resource, pods, devices, wants, others: each of `pods` pods asks `devices` of the
        resource, `others` beside GPUs, and wants this of its node. A part with two resources has two rows.
        Pods without a GPU have none.
    """
    counted: Counter[tuple[str, str, frozenset[tuple[str, int]]]] = Counter()
    for part in _parts(facts):
        gpus = frozenset((name, n) for name, n in part.resources.items() if is_gpu_resource(name) and n > 0)
        if gpus and part.pods > 0:
            counted[written(part.placement), other_resources.written(part.others), gpus] += part.pods
    return [
        {
            "part": part,
            "resource": resource,
            "pods": pods,
            "devices": devices,
            "wants": wants,
            "others": others,
        }
        for part, ((wants, others, gpus), pods) in enumerate(
            sorted(counted.items(), key=lambda item: (sorted(item[0][2]), item[0][:2]))
        )
        for resource, devices in sorted(gpus)
    ]


def pod_rows(facts: WorkloadFacts) -> list[dict[str, object]]:
    """Rows of pod_uid, resource, devices, wants, others: what each pod asks, claimed devices included."""
    claimed = claimed_resources(facts)
    return [
        {
            "pod_uid": pod.uid,
            "resource": resource,
            "devices": devices,
            "wants": written(pod.latest.placement),
            "others": other_resources.written(pod.latest.other_requests),
        }
        for pod in facts.pods
        if isinstance(pod.latest, objects.Pod)
        for resource, devices in sorted(_together(pod.latest.gpu_requests, claimed.get(pod.uid, {})).items())
        if is_gpu_resource(resource) and devices > 0
    ]


def node_rows(around: Collection[History]) -> Iterator[dict[str, object]]:
    """
    Stretches of the devices of all nodes; what changes nothing of a resource is merged.

    Returns:
        Rows in the columns of `node_device` but for the cluster; the end is None while it lasts.
    """
    for node, offered in offers(around, first_ms=first_sight(around)):
        yield from _rows_of(node, offered)


def _rows_of(node: History, offered: Sequence[Offer]) -> list[dict[str, object]]:
    gone = node.first(Moment.GONE)
    rows: list[dict[str, object]] = []
    open_rows: dict[str, dict[str, object]] = {}
    for offer in offered:
        says = {
            resource: {
                "node": node.name,
                "gpu_model": offer.model,
                "resource": resource,
                "product": offer.product,
                "replicas": offer.replicas,
                "labels": written_of_node(offer.body.labels),
                "taints": written_of_node(offer.body.taints),
                "capacity": offer.capacity.get(resource, 0),
                "allocatable": offer.allocatable.get(resource, 0),
                "schedulable": offer.schedulable,
                "others": other_resources.written(offer.body.other_allocatable),
            }
            for resource in sorted({*offer.capacity, *offer.allocatable})
            if is_gpu_resource(resource)
        }
        for resource in open_rows.keys() | says.keys():
            before, now = open_rows.get(resource), says.get(resource)
            if before and now and all(before[name] == value for name, value in now.items()):
                continue
            if before:
                before["end_ms"] = offer.at_ms
                del open_rows[resource]
            if now:
                open_rows[resource] = {**now, "start_ms": offer.at_ms, "end_ms": None}
                rows.append(open_rows[resource])
    for row in open_rows.values():
        row["end_ms"] = gone.at_ms if gone else None
    return rows


def _parts(facts: WorkloadFacts) -> Iterable[_Part]:
    """Pods and what each asks, by the same precedence as the workload's whole request."""
    claims = [claimed for claimed in claimed_resources(facts).values() if claimed]
    parts = list(_requested(facts))
    if not claims:
        return parts
    # What pods claim stands in no request: the pods tell, the newest ones, as many as are wanted.
    asked = [part for part in parts if _asks_gpus(part.resources)]
    wanted = sum(part.pods for part in parts) - sum(part.pods for part in asked)
    return [*asked, *_claimed(facts)[: max(wanted, 1)]]


def _requested(facts: WorkloadFacts) -> Iterable[_Part]:
    for history in facts.queueing:
        body = history.original
        if isinstance(body, objects.Workload) and body.pod_sets:
            return list(map(_of_pod_set, body.pod_sets))
    for history in facts.jobs:
        body = history.original
        if isinstance(body, objects.VolcanoJob):
            return _of_volcano(body, facts)
    declared = declared_pod_sets(facts)
    if declared:
        return list(map(_of_pod_set, declared))
    in_jobs = [
        _Part(max(job.parallelism, 1), job.gpu_requests_per_pod, job.placement) for job in jobs_of(facts)
    ]
    return [*in_jobs, *(_of_pod(pod.latest) for pod in outside_jobs(facts)
                        if isinstance(pod.latest, objects.Pod))]  # fmt: skip


def _of_pod_set(one: objects.PodSet) -> _Part:
    return _Part(one.count, one.gpu_requests, one.placement, one.other_requests)


def _of_volcano(body: objects.VolcanoJob, facts: WorkloadFacts) -> Iterable[_Part]:
    """Its pods; tasks of unequal pods are told apart by the pods that there are."""
    pods = max(body.replicas, 1)
    if all(count % pods == 0 for count in body.gpu_requests.values()):
        each = {name: count // pods for name, count in body.gpu_requests.items()}
        return [_Part(pods, each, body.placement)]
    newest = {pod.name: pod.latest for pod in facts.pods if isinstance(pod.latest, objects.Pod)}
    return [_of_pod(pod) for pod in newest.values()]


def _of_pod(pod: objects.Pod) -> _Part:
    return _Part(1, pod.gpu_requests, pod.placement, pod.other_requests)


def _claimed(facts: WorkloadFacts) -> list[_Part]:
    """A part for each pod that has GPUs by claims only, newest first; a claim that pods share is one's."""
    claimed = claimed_resources(facts)
    return [
        _Part(1, claimed[pod.uid], pod.latest.placement, pod.latest.other_requests)
        for pod in sorted(facts.pods, key=lambda one: (one.created_ms, one.uid), reverse=True)
        if isinstance(pod.latest, objects.Pod)
        and _asks_gpus(claimed.get(pod.uid, {}))
        and not _asks_gpus(pod.latest.gpu_requests)
    ]


def _asks_gpus(resources: objects.Resources) -> bool:
    return any(is_gpu_resource(name) and count for name, count in resources.items())


def _together(one: objects.Resources, other: objects.Resources) -> objects.Resources:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}
