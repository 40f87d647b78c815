"""What a workload asks for: how many pods at least, and how much GPU in all."""

from collections.abc import Iterable

from analytics.history import Catalog, History, WorkloadFacts
from domain import objects


def min_members(facts: WorkloadFacts) -> int:
    """
    How many pods the workload needs to be placed.

    Kueue: the sum of its pod sets (`minCount` under partial admission); PodGroups: `minMember`;
    a Job without a gang and a pod: 1.
    """
    for history in facts.queueing:
        body = history.latest
        if isinstance(body, objects.Workload):
            return max(sum(ps.count if ps.min_count is None else ps.min_count for ps in body.pod_sets), 1)
        if isinstance(body, objects.PodGroup):
            return max(body.min_member, 1)
    for history in facts.jobs:
        if isinstance(history.latest, objects.VolcanoJob):
            return max(history.latest.min_available, 1)
    return 1


def requested_micro_gpus(facts: WorkloadFacts) -> int | None:
    """What the whole workload asks for: all members of its pod sets, or of its job."""
    catalog = facts.catalog
    for history in facts.queueing:
        body = history.latest
        if isinstance(body, objects.Workload) and body.pod_sets:
            return _sum(_times(catalog.micro_gpus(ps.gpu_requests, None), ps.count) for ps in body.pod_sets)
    for history in facts.jobs:
        body = history.latest
        if isinstance(body, objects.Job):
            return _times(catalog.micro_gpus(body.gpu_requests_per_pod, None), max(body.parallelism, 1))
        if isinstance(body, objects.VolcanoJob):
            return catalog.micro_gpus(body.gpu_requests, None)
    newest: dict[str, History] = {pod.name: pod for pod in facts.pods}
    return _sum(_pod_micro_gpus(catalog, pod) for pod in newest.values())


def _pod_micro_gpus(catalog: Catalog, pod: History) -> int | None:
    body = pod.latest
    if not isinstance(body, objects.Pod):
        return 0
    return catalog.micro_gpus(body.gpu_requests, catalog.at(body.node, pod.created_ms) if body.node else None)


def _times(quantity: int | None, count: int) -> int | None:
    return None if quantity is None else quantity * count


def _sum(quantities: Iterable[int | None]) -> int | None:
    total = 0
    for quantity in quantities:
        if quantity is None:
            return None
        total += quantity
    return total
