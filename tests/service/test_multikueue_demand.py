"""What MultiKueue gave to several clusters is asked once, wherever it might go, and held once."""

from typing import Any

import pytest

from domain.policy import Policy
from service.fairness import Fairness
from store.embedded import Store
from tests.service.fairness_world import TABLES
from tests.service.test_multikueue import (
    EAST,
    MANAGER,
    WEST,
    WEST_GONE,
    Read,
    copy,
    read,
    said,
    stamp,
)

KUEUE = "kueue.x-k8s.io/v1beta2"


def made(kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {
        "uid": f"{kind}-{name}", "name": name, "namespace": namespace,
        "creationTimestamp": stamp(-60), "resourceVersion": "1",
    }  # fmt: skip
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "spec": spec, "status": {}}


def terms(cluster: str, *, gpus: int = 16) -> list[Read]:
    """A queue `main` with a quota of GPUs in one flavor, open to namespace red."""
    quota = {"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "a100", "resources": [quota]}]}
    queue = {"namespaceSelector": {}, "resourceGroups": [group]}
    return [
        (cluster, -60, made("ResourceFlavor", "a100", {})),
        (cluster, -60, made("ClusterQueue", "main", queue)),
        (cluster, -60, made("LocalQueue", "lq", {"clusterQueue": "main"}, "red")),
    ]


HUB = [*terms("hub"), *MANAGER]
PARTS = {"hub": HUB, "east": [*terms("east"), *EAST], "west": [*terms("west"), *WEST]}


def booked(store: Store, *clusters: str) -> None:
    stage = Fairness(store, Policy())
    for cluster in clusters or ("east", "hub", "west"):
        stage.refresh(cluster, 0)


def demand(store: Store, minute: float) -> dict[str, float | None]:
    return {name: gpus for name, gpus in said(store, "demanded_gpus", minute, "cluster").items() if gpus}


def test_a_workload_is_asked_once_whichever_clusters_it_could_go_to() -> None:
    store = Store.open(None)
    # A copy in the south is older than that in the east, but no quota there could ever hold it.
    south: list[Read] = [*terms("south", gpus=4), ("south", 5.05, copy("c-south", 5.05))]
    read(store, PARTS["west"], HUB, PARTS["east"], south, gone=[WEST_GONE])
    booked(store, "west", "hub", "east", "south")
    assert demand(store, 3) == {"hub": 8}  # nobody has a copy yet
    assert demand(store, 5.5) == {"east": 8}  # three workers have a copy, none has quota
    assert demand(store, 6.2) == {"east": 8}  # east has quota, west's copy still waits
    assert demand(store, 7.5) == {"east": 8}  # its pods are not bound
    assert demand(store, 20) == {"east": 8}  # held
    store.close()


@pytest.mark.long
def test_books_kept_up_object_by_object_are_those_of_a_single_sweep() -> None:
    at_once, step_by_step = Store.open(None), Store.open(None)
    older: list[Read] = [*terms("south", gpus=4), ("south", 5.05, copy("c-south", 5.05))]
    parts = [*PARTS.values(), older]
    queue = terms("south")[1][2]
    queue["metadata"]["resourceVersion"] = "2"
    larger: list[Read] = [("south", 5.5, queue)]
    read(at_once, *parts, larger, gone=[WEST_GONE])
    booked(at_once, "east", "hub", "west", "south")
    for one in sorted((one for part in (*parts, larger) for one in part), key=lambda one: one[1]):
        read(step_by_step, [one])
        booked(step_by_step, one[0])
    read(step_by_step, gone=[WEST_GONE])
    booked(step_by_step, "west")
    assert told(step_by_step) == told(at_once)
    assert demand(at_once, 5.4) == {"east": 8}
    assert demand(at_once, 5.8) == {"south": 8}


def told(store: Store) -> dict[str, list[dict[str, object]]]:
    return {name: store.rows(f"select * from {name} order by all") for name in TABLES}  # noqa: S608 (names from here)


def test_where_pods_of_the_worker_are_not_read_its_admission_alone_holds() -> None:
    store = Store.open(None)
    read(store, HUB, [one for one in PARTS["east"] if one[2]["kind"] != "Pod"])
    booked(store)
    assert said(store, "held_gpus", 20) == {"": 8}
    assert said(store, "reserved_gpus", 20) == {"": 8}
    assert demand(store, 20) == {"east": 8}
    store.close()
