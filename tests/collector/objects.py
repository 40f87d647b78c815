"""Objects as an API server gives them, as small as a test needs them."""

from typing import Any

from collector.intake import Intake
from collector.translator import Translator, find
from tests.fakes import MemorySink

START_MS = 1_772_442_000_000  # 2026-03-02T09:00:00Z
CREATED = "2026-03-02T09:00:00Z"
Object = dict[str, Any]


def translator(api_kind: str, group: str = "") -> Translator:
    """The translator of a kind, which is there."""
    found = find(group, api_kind)
    assert found is not None
    return found


POD = translator("Pod")
WORKLOAD = translator("Workload", "kueue.x-k8s.io")
POD_GROUP = translator("PodGroup", "scheduling.volcano.sh")
NAMESPACE = translator("Namespace")
EVENT = translator("Event")


def at(seconds: float) -> int:
    """Milliseconds of an instant so many seconds after the start of a test's story."""
    return START_MS + round(seconds * 1000)


def stamp(seconds: int) -> str:
    """The time stamp of that instant, within the first hour."""
    return f"2026-03-02T09:{seconds // 60:02d}:{seconds % 60:02d}Z"


def pod(uid: str, version: int, *, gpus: object = 1, status: Object | None = None, **spec: object) -> Object:
    """A pod with one container."""
    resources = {"limits": {"nvidia.com/gpu": gpus}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(uid, version, namespace="t"),
        "spec": {"containers": [{"name": "main", "resources": resources}], **spec},
        "status": status or {"phase": "Pending"},
    }


def workload(uid: str, version: int, *, conditions: list[Object], evictions: int = 0) -> Object:
    """A Kueue Workload that was evicted so often."""
    counted = {"evictions": [{"reason": "Preempted", "count": evictions}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata(uid, version, namespace="t"),
        "status": {"conditions": conditions, **({"schedulingStats": counted} if evictions else {})},
    }


def condition(kind: str, status: str, seconds: int, *, reason: str = "", message: str = "") -> Object:
    """A condition that flipped so many seconds after the start."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": stamp(seconds),
    }


def metadata(uid: str, version: int, *, name: str = "", namespace: str = "") -> Object:
    """Metadata of an object that was created at the start."""
    return {
        "uid": uid,
        "name": name or uid,
        "namespace": namespace,
        "resourceVersion": str(version),
        "creationTimestamp": CREATED,
    }


def intake(sink: MemorySink) -> Intake:
    """A new intake that resumes where the sink stands."""
    return Intake("c", sink, sink.known("c"))
