"""CPU and memory of nodes, from objects of an API server to the sentence: what is free, and who has it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec
import pytest

from collector.intake import Intake
from collector.translator import find
from domain.policy import Policy
from service import why
from service.refresh import Refresher
from store.embedded import Store
from tests.collector.objects import at, condition, metadata

GPU, RDMA = "nvidia.com/gpu", "rdma/hca"
Object = dict[str, Any]
NOW = at(600)


def node(name: str, **has: str) -> Object:
    """A node of 8 GPUs, 128 CPUs and 1 TiB."""
    allocatable = {GPU: "8", "cpu": "128", "memory": "1Ti", "pods": "110", **has}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, 1) | {"labels": {"nvidia.com/gpu.product": "A100"}},
        "spec": {},
        "status": {
            "capacity": allocatable,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(uid: str, *, on: str = "", **asks: str) -> Object:
    """A pod that asks GPUs and all else by their short names; bound to a node, or waiting for one."""
    names = {"gpu": GPU, "hca": RDMA, "storage": "ephemeral-storage"}
    requests = {names.get(name, name): amount for name, amount in asks.items()}
    bound = condition("PodScheduled", "True" if on else "False", 60, reason="" if on else "Unschedulable")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(uid, 1, namespace="lab"),
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": "Running" if on else "Pending", "conditions": [bound]},
    }


@dataclass(frozen=True)
class Site:
    """A cluster; its objects bear its name before their uids."""

    store: Store
    name: str

    def why(self, uid: str) -> Object:
        found = why.document(self.store, f"{self.name}-{uid}", NOW, Policy())
        assert found is not None
        assert found["primary"] is not None
        return dict(found)

    def told(self, uid: str) -> tuple[str, str]:
        found = self.why(uid)
        return found["primary"]["reason"], found["verdict"]

    def write(self, sql: str) -> None:
        with self.store.transaction() as connection:
            connection.execute(sql, {"cluster": self.name})


Sites = Callable[..., Site]


@pytest.fixture(scope="module")
def site() -> Iterator[Sites]:
    """Makes clusters of one store, for to open one takes longer than all else here."""
    store = Store.open(None)
    number = count()

    def made(*written: Object) -> Site:
        name = f"c{next(number)}"
        intake = Intake(name, store, store.known(name))
        for one in written:
            translator = find("", one["kind"])
            assert translator is not None
            own = one | {"metadata": one["metadata"] | {"uid": f"{name}-{one['metadata']['uid']}"}}
            intake.see(translator, "ADDED", own, at(120))
        intake.flush()
        Refresher(store=store).refresh_cluster(name)
        return Site(store, name)

    yield made
    store.close()


BUSY = (
    pod("trains", on="n1", gpu="2", cpu="20", memory="64Gi"),
    # No GPU is asked, and CPUs are held all the same.
    pod("daemon", on="n1", cpu="96", memory="8Gi"),
)


def test_cpus_that_pods_without_gpus_hold_are_not_free(site: Sites) -> None:
    north = site(node("n1"), *BUSY, pod("waits", gpu="4", cpu="16"), pod("fits", gpu="4", cpu="12"))
    assert north.told("waits") == (
        "OTHER_RESOURCE",
        "Nodes with free GPUs lack CPUs: n1 has 6 GPUs free, but 12 of its 128 CPUs, and a pod asks 16.",
    )
    assert north.told("fits")[0] == "UNKNOWN"
    found = north.why("waits")
    # Once that one ends there is room; who holds CPUs alone is in nobody's way to GPUs.
    assert [one["name"] for one in found["holders"]] == ["trains"]
    assert found["primary"]["remedy"].startswith("Ask for less of it with each GPU")


def test_whatever_is_short_is_told_in_its_units(site: Sites) -> None:
    asks = {
        "memory": {"memory": "960Gi"},
        "both": {"cpu": "13", "memory": "953Gi"},
        "never": {"cpu": "129"},
        "never-memory": {"memory": "1025Gi"},
    }
    north = site(node("n1"), *BUSY, *(pod(uid, gpu="1", **asked) for uid, asked in asks.items()))
    largest, lack = "and the largest node where it may run has", "Nodes with free GPUs lack"
    assert {uid: north.told(uid)[1] for uid in asks} == {
        "memory": (
            f"{lack} memory: n1 has 6 GPUs free, but 952 of its 1024 GiB of memory, and a pod asks 960."
        ),
        "both": f"{lack} CPUs, memory: n1 has 6 GPUs free, but 12 of its 128 CPUs, and a pod asks 13.",
        "never": f"It can never start: each pod asks 129 CPUs, {largest} 128.",
        "never-memory": f"It can never start: each pod asks 1025 GiB of memory, {largest} 1024.",
    }


def test_a_device_of_another_kind_counts_where_some_node_has_it(site: Sites) -> None:
    waits = pod("waits", gpu="1", hca="1")
    assert site(node("n1"), waits).told("waits")[0] == "UNKNOWN", "somebody else may hand it out"
    # n2 has one, which is held.
    two = site(node("n1"), node("n2", **{RDMA: "1"}), pod("has", on="n2", gpu="1", hca="1"), waits)
    assert two.told("waits")[0] == "OTHER_RESOURCE"


def test_a_node_that_is_full_of_pods_takes_no_more(site: Sites) -> None:
    full = site(node("n1", pods="1"), pod("there", on="n1"), pod("waits", gpu="1"))
    reason, verdict = full.told("waits")
    assert reason == "OTHER_RESOURCE"
    assert verdict == (
        "Nodes with free GPUs lack places for pods: n1 has 8 GPUs free, but 0 of its 1 places for pods,"
        " and a pod asks 1."
    )


def test_what_is_free_is_told_as_the_most_where_of_some_pod_nobody_tells(site: Sites) -> None:
    north = site(node("n1"), *BUSY, pod("older", on="n1"), pod("waits", gpu="4", cpu="16"))
    # As a version kept it that did not read what pods ask.
    north.write(
        "update holding set milli_cpus = null, memory_bytes = null, other_asks = ''"
        " where cluster = $cluster and ends_with(workload_uid, 'older')"
    )
    assert "but at most 12 of its 128 CPUs" in north.told("waits")[1]


def test_where_nobody_tells_what_nodes_have_nothing_is_concluded(site: Sites) -> None:
    north = site(node("n1"), *BUSY, pod("waits", gpu="4", cpu="129"))
    assert north.told("waits")[0] == "NEVER_FITS"
    north.write("update node_device set others = '' where cluster = $cluster")
    assert north.told("waits")[0] == "UNKNOWN"


def test_what_a_pod_asks_is_its_effective_request(site: Sites) -> None:
    """The larger of init containers with the sidecars before them and of all that run, with the overhead."""
    waits = pod("waits", gpu="1", cpu="4", memory="8Gi")
    sidecar = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    init = {"name": "init", "resources": {"requests": {"cpu": "90"}, "limits": {"memory": "1Gi"}}}
    waits["spec"] |= {"initContainers": [sidecar, init], "overhead": {"cpu": "250m", "memory": "1"}}
    # What the pod asks as a whole stands for what its containers ask, and not for the overhead.
    whole = pod("whole", gpu="1", cpu="4")
    whole["spec"] |= {"resources": {"requests": {"cpu": "6"}}, "overhead": {"cpu": "1"}}
    north = site(node("n1"), waits, whole)
    rows = north.store.rows(
        "select pod_uid, others from pod_device where cluster = $cluster", {"cluster": north.name}
    )
    assert {
        str(row["pod_uid"]).partition("-")[2]: msgspec.json.decode(str(row["others"])) for row in rows
    } == {
        "waits": {"cpu": 91_250, "memory": 8 * 2**30 + 1},
        "whole": {"cpu": 7_000},
    }
