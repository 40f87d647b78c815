"""What a workload asks for: how many pods at least, and how much GPU in all."""

from collections.abc import Collection, Iterable

from analytics.claims import claimed_micro_gpus
from analytics.history import Catalog, History, WorkloadFacts
from domain import objects
from domain.facts import Moment

# Job objects whose members are useful only together; a plain Job grows into its pods, and so does what
# is known by references only.
_ALL_TOGETHER = frozenset(
    {"JobSet", "TrainJob", "MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"}
)


def min_members(facts: WorkloadFacts) -> int:
    """
    How many pods the workload needs to be placed.

    Kueue: the sum of its pod sets (`minCount` under partial admission); PodGroups: `minMember`;
    JobSet, MPI, PyTorch and their like: all; Ray: its head and the workers that are not left to its
    autoscaler; a Job without a gang and a pod: 1. What was asked at the submission counts: an
    answer about an earlier instant must not change with a later edit.
    """
    for history in facts.queueing:
        body = history.original
        if isinstance(body, objects.Workload):
            return max(_least(body.pod_sets), 1)
        if isinstance(body, objects.PodGroup):
            return max(body.min_member, 1)
    for history in facts.jobs:
        if isinstance(history.original, objects.VolcanoJob):
            return max(history.original.min_available, 1)
    declared = declared_pod_sets(facts)
    if declared:
        return max(_least(declared), 1)
    if _kinds_above(facts) & _ALL_TOGETHER:
        in_jobs = sum(job.parallelism for job in jobs_of(facts))
        return max(in_jobs + len(outside_jobs(facts)), 1)
    return 1


def gang_size(facts: WorkloadFacts) -> int:
    """
    By which size of gang the workload is counted: its minimum members.

    Of a job from a table its nodes: there one pod stands for all of them.
    """
    nodes = (body.nodes for history in facts.queueing
             if isinstance(body := history.original, objects.ImportedJob))  # fmt: skip
    return max(next(nodes, 0), min_members(facts))


def requested_micro_gpus(facts: WorkloadFacts) -> int | None:
    """
    What the whole workload asked for at its submission: all members of its pod sets or its jobs.

    What pods claim as devices comes on top: it stands in no request.
    """
    catalog = facts.catalog
    for history in facts.queueing:
        body = history.original
        if isinstance(body, objects.Workload) and body.pod_sets:
            return _of_pod_sets(facts, body.pod_sets)
    for history in facts.jobs:
        if isinstance(history.original, objects.VolcanoJob):
            return catalog.micro_gpus(history.original.gpu_requests, None)
    declared = declared_pod_sets(facts)
    if declared:
        return _of_pod_sets(facts, declared)
    in_jobs = (
        _times(catalog.micro_gpus(j.gpu_requests_per_pod, None), max(j.parallelism, 1))
        for j in jobs_of(facts)
    )
    outside = (_pod_micro_gpus(catalog, pod) for pod in outside_jobs(facts))
    members = sum(max(job.parallelism, 1) for job in jobs_of(facts)) + len(outside_jobs(facts))
    return _sum((*in_jobs, *outside, claimed_micro_gpus(facts, members=members)))


def declared_pod_sets(facts: WorkloadFacts) -> list[objects.PodSet]:
    """The pod sets of the highest job objects that declare any; what is made anew asks for no more."""
    level = facts.top_jobs
    while level:
        newest = {(history.kind, history.name): history.original for history in level}
        found = [
            pod_set
            for body in newest.values()
            if isinstance(body, objects.JobObject)
            for pod_set in body.pod_sets
        ]
        if found:
            return found
        level = facts.jobs_below(level)
    return []


def _least(pod_sets: Iterable[objects.PodSet]) -> int:
    return sum(ps.count if ps.min_count is None else ps.min_count for ps in pod_sets)


def _of_pod_sets(facts: WorkloadFacts, pod_sets: Collection[objects.PodSet]) -> int | None:
    asked = [_times(facts.catalog.micro_gpus(ps.gpu_requests, None), ps.count) for ps in pod_sets]
    return _sum((*asked, claimed_micro_gpus(facts, members=sum(ps.count for ps in pod_sets))))


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
        if not isinstance(body, objects.Pod) or (body.yunikorn and body.yunikorn.placeholder):
            continue
        if body.owner is None or body.owner.uid not in jobs:
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
    bound = pod.first(Moment.BOUND)
    stretch = catalog.at(bound.subject, pod.created_ms) if bound and bound.subject else None
    return catalog.micro_gpus(body.gpu_requests, stretch)


def _times(quantity: int | None, count: int) -> int | None:
    return None if quantity is None else quantity * count


def _sum(quantities: Iterable[int | None]) -> int | None:
    total = 0
    for quantity in quantities:
        if quantity is None:
            return None
        total += quantity
    return total
