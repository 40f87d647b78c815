"""What a workload asks for: how many pods at least, and how much GPU in all."""

from collections.abc import Iterable

from analytics.history import Catalog, History, WorkloadFacts
from domain import objects

# Job objects whose members are useful only together; a RayJob or a plain Job grows into its pods.
_ALL_TOGETHER = frozenset(
    {"JobSet", "TrainJob", "MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"}
)


def min_members(facts: WorkloadFacts) -> int:
    """
    How many pods the workload needs to be placed.

    Kueue: the sum of its pod sets (`minCount` under partial admission); PodGroups: `minMember`;
    JobSet, MPI, PyTorch and their like: all; a Job without a gang and a pod: 1. What was asked at
    the submission counts: an answer about an earlier instant must not change with a later edit.
    """
    for history in facts.queueing:
        body = history.original
        if isinstance(body, objects.Workload):
            return max(sum(ps.count if ps.min_count is None else ps.min_count for ps in body.pod_sets), 1)
        if isinstance(body, objects.PodGroup):
            return max(body.min_member, 1)
    for history in facts.jobs:
        if isinstance(history.original, objects.VolcanoJob):
            return max(history.original.min_available, 1)
    if _kinds_above(facts) & _ALL_TOGETHER:
        in_jobs = sum(job.parallelism for job in jobs_of(facts))
        return max(in_jobs + len(outside_jobs(facts)), 1)
    return 1


def requested_micro_gpus(facts: WorkloadFacts) -> int | None:
    """What the whole workload asked for at its submission: all members of its pod sets or its jobs."""
    catalog = facts.catalog
    for history in facts.queueing:
        body = history.original
        if isinstance(body, objects.Workload) and body.pod_sets:
            return _sum(_times(catalog.micro_gpus(ps.gpu_requests, None), ps.count) for ps in body.pod_sets)
    for history in facts.jobs:
        if isinstance(history.original, objects.VolcanoJob):
            return catalog.micro_gpus(history.original.gpu_requests, None)
    in_jobs = (
        _times(catalog.micro_gpus(j.gpu_requests_per_pod, None), max(j.parallelism, 1))
        for j in jobs_of(facts)
    )
    outside = (_pod_micro_gpus(catalog, pod) for pod in outside_jobs(facts))
    return _sum((*in_jobs, *outside))


def jobs_of(facts: WorkloadFacts) -> list[objects.Job]:
    """Its batch/v1 Jobs as they were submitted."""
    bodies = (history.original for history in facts.jobs)
    return [body for body in bodies if isinstance(body, objects.Job)]


def outside_jobs(facts: WorkloadFacts) -> list[History]:
    """Pods that none of the known Jobs made, the newest of each name: a retry asks for no more."""
    jobs = {history.uid for history in facts.jobs}
    newest: dict[str, History] = {}
    for pod in facts.pods:
        body = pod.latest
        owner = body.owner if isinstance(body, objects.Pod) else None
        if owner is None or owner.uid not in jobs:
            newest[pod.name] = pod
    return list(newest.values())


def _kinds_above(facts: WorkloadFacts) -> set[str]:
    bodies = [history.original for history in (*facts.jobs, *facts.pods)]
    owners = [body.owner for body in bodies if isinstance(body, (objects.Job, objects.Pod))]
    return {owner.kind for owner in owners if owner is not None}


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
