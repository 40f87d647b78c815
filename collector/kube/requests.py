"""How many GPUs a pod holds, and what else it asks."""

from collections.abc import Callable

from collector.raw import ContainerResources, PodSpec, Quantities
from collector.wording import gpu_counts, other_milli
from domain.objects import Resources

# What a pod may ask as a whole.
_OF_PODS = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def effective_gpu_requests(spec: PodSpec | None) -> Resources:
    """The effective request of each GPU resource of a pod, or of a pod's template."""
    return _effective(spec, gpu_counts)


def effective_other_requests(spec: PodSpec | None) -> Resources:
    """The same of all other resources, in thousandths of their units."""
    return _effective(spec, other_milli)


def _effective(spec: PodSpec | None, amounts: Callable[[Quantities | None], Resources]) -> Resources:
    """
    What a pod asks of the resources that are read by `amounts`.

    The largest of: all containers and sidecars together; each ordinary init container together
    with the sidecars declared before it. A sidecar is an init container with restart policy
    Always. A template may have limits only: the API server would take the requests from them.
    What the pod itself asks of CPU, memory and huge pages stands for what its containers do. The overhead
    of its runtime comes on top of either.

    Source: KEP-753 and KEP-2837, `PodRequests` in k8s.io/component-helpers.
    """
    if spec is None:
        return {}
    running: Resources = {}
    peak: Resources = {}
    for container in spec.init_containers or ():
        asked = _requests(container.resources, amounts)
        if container.restart_policy == "Always":
            _add(running, asked)
            continue
        for resource, count in asked.items():
            peak[resource] = max(peak.get(resource, 0), count + running.get(resource, 0))
    for container in spec.containers or ():
        _add(running, _requests(container.resources, amounts))
    for resource, count in peak.items():
        running[resource] = max(running.get(resource, 0), count)
    for resource, count in _requests(spec.resources, amounts).items():
        if resource in _OF_PODS or resource.startswith(_HUGE_PAGES):
            running[resource] = count
    if spec.overhead:
        _add(running, amounts(spec.overhead))
    return running


def _add(total: Resources, more: Resources) -> None:
    for resource, count in more.items():
        total[resource] = total.get(resource, 0) + count


def _requests(
    written: ContainerResources | None, amounts: Callable[[Quantities | None], Resources]
) -> Resources:
    if written is None:
        return {}
    return amounts(written.limits) | amounts(written.requests)
