"""
Pods with which YuniKorn keeps places for a gang.

They hold GPUs like others until the pod comes for which they stand. Both may be there for a moment.
"""

from collections.abc import Sequence
from dataclasses import replace

from analytics.pods import Instant, PodCourse
from domain.objects import YuniKornTask


def is_placeholder(pod: PodCourse) -> bool:
    """Whether the pod only keeps a place."""
    task = _task(pod)
    return task is not None and task.placeholder


def replaced(pods: Sequence[PodCourse]) -> tuple[PodCourse, ...]:
    """
    The pods; a placeholder holds no longer than until a pod of its task group is bound to its node.

    So that no GPU is held twice while the placeholder ends.
    """
    given: dict[str, Instant] = {}
    placeholders = sorted((pod for pod in pods if is_placeholder(pod)), key=_bound_ms)
    for pod in sorted((pod for pod in pods if not is_placeholder(pod)), key=_bound_ms):
        before = next((one for one in placeholders if one.uid not in given and _stands_for(one, pod)), None)
        if before is not None and pod.bound is not None:
            given[before.uid] = Instant(at_ms=pod.bound.at_ms, earliest_ms=pod.bound.earliest_ms)
    return tuple(
        replace(pod, released=_earlier(pod.released, given[pod.uid])) if pod.uid in given else pod
        for pod in pods
    )


def _stands_for(placeholder: PodCourse, pod: PodCourse) -> bool:
    kept, task = _task(placeholder), _task(pod)
    if kept is None or task is None or placeholder.bound is None or pod.bound is None:
        return False
    same = (kept.app, kept.task_group, placeholder.node) == (task.app, task.task_group, pod.node)
    return same and placeholder.bound.at_ms <= pod.bound.at_ms


def _earlier(one: Instant | None, other: Instant) -> Instant:
    return other if one is None or other.at_ms < one.at_ms else one


def _bound_ms(pod: PodCourse) -> int:
    return pod.bound.at_ms if pod.bound else pod.created_ms


def _task(pod: PodCourse) -> YuniKornTask | None:
    return pod.body.yunikorn if pod.body else None
