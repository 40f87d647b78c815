"""What YuniKorn reads from a pod: its application, its queue, and whether it only keeps a place."""

from collections.abc import Mapping

from collector.raw import PodSpec
from domain.objects import YuniKornTask

SCHEDULER = "yunikorn"
_TASK_GROUP = "yunikorn.apache.org/task-group-name"
_APP = "yunikorn.apache.org/app-id"
_QUEUE = "yunikorn.apache.org/queue"
_PAUSE = "pause"


def yunikorn_task(
    labels: Mapping[str, str], annotations: Mapping[str, str], spec: PodSpec
) -> YuniKornTask | None:
    """The pod's place in its application; None where it belongs to none of YuniKorn's."""
    app = annotations.get(_APP) or labels.get(_APP) or ""
    if not app and spec.scheduler_name == SCHEDULER:
        # Other programs use these names as well: they count for pods of YuniKorn only.
        app = labels.get("applicationId") or labels.get("spark-app-selector") or ""
    task_group = annotations.get(_TASK_GROUP, "")
    if not app and not task_group:
        return None
    placeholder = _is_placeholder(labels, annotations, spec)
    return YuniKornTask(app=app, task_group=task_group, placeholder=placeholder)


def yunikorn_queue(labels: Mapping[str, str], annotations: Mapping[str, str], spec: PodSpec) -> str:
    """The queue that the pod names; empty without one."""
    short = labels.get("queue") if spec.scheduler_name == SCHEDULER else ""
    return labels.get(_QUEUE) or short or annotations.get(_QUEUE, "")


def _is_placeholder(labels: Mapping[str, str], annotations: Mapping[str, str], spec: PodSpec) -> bool:
    """
    Whether YuniKorn made the pod to keep a place.

    It marks those since 1.0; before that they are told by a task group and nothing but a pause.
    """
    if annotations.get("yunikorn.apache.org/placeholder", "").lower() == "true":
        return True
    if spec.scheduler_name != SCHEDULER or not annotations.get(_TASK_GROUP):
        return False
    flagged = labels.get("placeholder", "").lower() == "true"
    containers = spec.containers or []
    return flagged or (bool(containers) and all(container.name == _PAUSE for container in containers))
