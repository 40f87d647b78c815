"""Parts of objects that every simulator writes in the same way."""

from typing import Any, TypeAlias

from sample_data.stamps import stamp

Json: TypeAlias = dict[str, Any]

GRACE_SECONDS = 30
CONTAINER = "main"


def set_condition(conditions: list[Json], at_ms: int, condition: Json) -> None:
    """Write a condition; its time moves only when the status does, as the API machinery does it."""
    fresh = {"lastTransitionTime": stamp(at_ms), **condition}
    for index, old in enumerate(conditions):
        if old["type"] == condition["type"]:
            if old["status"] == condition["status"]:
                fresh["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[index] = fresh
            return
    conditions.append(fresh)


def job_owner(name: str, uid: str) -> Json:
    """The reference of a pod or Workload to its Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def deletion(at_ms: int) -> Json:
    """What the metadata of a pod say that is being deleted since that instant."""
    return {
        "deletionTimestamp": stamp(at_ms + GRACE_SECONDS * 1000),
        "deletionGracePeriodSeconds": GRACE_SECONDS,
    }


def container_status(image: str, *, ready: bool, restarts: int, state: Json, last_state: Json) -> Json:
    """The status of a pod's one container."""
    return {
        "name": CONTAINER,
        "image": image,
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        "lastState": last_state,
    }


def terminated(started_ms: int | None, at_ms: int, *, exit_code: int, reason: str) -> Json:
    """The state of a container that is over."""
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": None if started_ms is None else stamp(started_ms),
            "finishedAt": stamp(at_ms),
        }
    }


def pod_spec(  # noqa: PLR0913 - a pod says that much of itself
    image: str, devices: Json, *, cpu: str, memory: str, pool: str, restarts: bool, priority_class: str
) -> Json:
    """The spec of a pod with one container, before it is bound."""
    return {
        "containers": [
            {
                "name": CONTAINER,
                "image": image,
                "resources": {"limits": devices, "requests": {"cpu": cpu, "memory": memory, **devices}},
            }
        ],
        "nodeSelector": {"pool": pool},
        "restartPolicy": "OnFailure" if restarts else "Never",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "priorityClassName": priority_class,
    }
