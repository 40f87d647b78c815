"""The spec of a Ray cluster, which a RayCluster has and a RayJob contains."""

from collector.job_wording import pod_set, priority_class_of
from collector.raw import Int, Part, PodTemplate
from domain.objects import PodSet


class HeadGroup(Part):
    template: PodTemplate | None = None


class WorkerGroup(Part):
    group_name: str | None = None
    replicas: Int | None = None
    min_replicas: Int | None = None
    num_of_hosts: Int | None = None
    suspend: bool | None = None
    template: PodTemplate | None = None


class ClusterSpec(Part):
    suspend: bool | None = None
    enable_in_tree_autoscaling: bool | None = None
    head_group_spec: HeadGroup | None = None
    worker_group_specs: list[WorkerGroup] | None = None


def pod_sets(spec: ClusterSpec | None) -> tuple[PodSet, ...]:
    """
    The head, and the workers by group.

    Ray works once all of them are there; of a group that Ray's autoscaler sizes, the smallest size.
    KubeRay asks gang schedulers for the same.
    """
    if spec is None:
        return ()
    head = pod_set("head", 1, spec.head_group_spec.template if spec.head_group_spec else None)
    workers = [group for group in spec.worker_group_specs or () if not group.suspend]
    return (head, *(_workers(group, autoscaled=bool(spec.enable_in_tree_autoscaling)) for group in workers))


def priority_class(spec: ClusterSpec | None) -> str:
    """The priority class of its pods."""
    if spec is None:
        return ""
    head = [spec.head_group_spec.template] if spec.head_group_spec else []
    return priority_class_of([*(group.template for group in spec.worker_group_specs or ()), *head])


def _workers(group: WorkerGroup, *, autoscaled: bool) -> PodSet:
    hosts = 1 if group.num_of_hosts is None else group.num_of_hosts
    least = group.min_replicas or 0
    replicas = max(least if group.replicas is None else group.replicas, least)
    return pod_set(
        group.group_name,
        replicas * hosts,
        group.template,
        min_count=least * hosts if autoscaled else None,
    )
