"""
Cases about what is free: stranded GPUs, and GPUs that turned unhealthy.

The adapters write the cases' rows as objects of the API and rename keys; the figures come from the
collector, the lifecycle and the metrics.
"""

from store.embedded import Store
from tests.cases.replay import CREATED, Json, asking, case, check, queued_for, replay, value, values, written

NOON = "2026-05-04T12:00:00Z"
GPU = "nvidia.com/gpu"


def node(name: str, capacity: int, allocatable: int, *, cordoned: bool) -> tuple[str, Json, str]:
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": CREATED}]
    sizes: Json = {"capacity": {GPU: str(capacity)}, "allocatable": {GPU: str(allocatable)}}
    spec = {"unschedulable": cordoned}
    return "ADDED", written("Node", name, spec=spec, status={**sizes, "conditions": ready}), CREATED


def waiting(job: Json) -> tuple[str, Json, str]:
    spec = queued_for(job["gpus_per_pod"])
    spec["podSets"][0]["count"] = job["pods"]
    return "ADDED", written("Workload", job["job"], spec=spec), CREATED


def test_d05_fragmentation_is_a_relation_between_what_is_free_and_what_waits() -> None:
    given, expected = case("D05-fragmentation-number")
    nodes = [
        node(n["name"], n["free"], n["free"], cordoned=n.get("cordoned", False))
        for n in given["data"]["nodes"]
    ]
    snapshots = given["data"]["snapshots"]
    stores = {each["id"]: replay([*nodes, *map(waiting, each["waiting"])]) for each in snapshots}
    free, stranded = ({name: value(store, metric, NOON) or 0 for name, store in stores.items()}
                      for metric in ("free_gpus", "fragmented_gpus"))  # fmt: skip
    percent = {name: round(100 * stranded[name] / free[name], 2) for name in stores}
    check({"free": free, "stranded": stranded, "stranded_pct": percent}, expected)


def pod_on(name: str, gpus: int) -> tuple[str, Json, str]:
    held = {"nodeName": name, **asking(gpus)}
    return "ADDED", written("Pod", f"pod-{name}", spec=held, status={"phase": "Running"}), CREATED


def test_g07_unhealthy_gpus_are_not_free_and_hide_none_that_is() -> None:
    given, expected = case("G07-unhealthy-gpus")
    nodes = given["data"]["nodes"]
    read = [
        node(n["name"], n["capacity"], n["allocatable"], cordoned=n.get("unschedulable", False))
        for n in nodes
    ]
    store: Store = replay([*read, *(pod_on(n["name"], n["requested"]) for n in nodes if n["requested"])])
    answer = {
        "unhealthy": values(store, "unhealthy_gpus", NOON, by="node"),
        "free_schedulable": values(store, "free_gpus", NOON, by="node"),
        "overcommitted": values(store, "overcommitted_gpus", NOON, by="node"),
        "cluster_free_schedulable": value(store, "free_gpus", NOON),
    }
    check(answer, expected)
