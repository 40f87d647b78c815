"""What later schedulers and drivers say of nodes and queues, and kinds of jobs that a site adds."""

from domain.policy import Policy
from domain.window import parse_instant
from service.refresh import Refresher
from store.embedded import Store
from tests.cases.replay import Feed, Json, value
from tests.service.test_kinds import AFTER, at, lives, made, own_claim, pod
from tests.service.test_kinds import claim as claimed

READY: Json = {"conditions": [{"type": "Ready", "status": "True"}]}


def ms(minute: int) -> int:
    return parse_instant(at(minute))


def node(name: str, *, gpus: int = 0) -> Json:
    offers = {"capacity": {"nvidia.com/gpu": gpus}, "allocatable": {"nvidia.com/gpu": gpus}} if gpus else {}
    return made("v1", "Node", name, 0, status=READY | offers)


def resource_slice(name: str, on: str, minute: int, gpus: int, *, generation: int = 1) -> Json:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"type": {"string": "gpu"}, "uuid": {"string": f"GPU-{number}"}},
        }
        for number in range(gpus)
    ]
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": on, "pool": pool, "devices": devices}
    return made("resource.k8s.io/v1", "ResourceSlice", name, minute, spec=spec)


def capacity(store: Store) -> list[tuple[object, object, object]]:
    rows = store.rows(
        "select start_ms, end_ms, capacity_micro_gpus as micro from node_span order by start_ms"
    )
    return [(row["start_ms"], row["end_ms"], row["micro"]) for row in rows]


def test_a_node_without_a_device_plugin_has_the_gpus_that_slices_offer_on_it() -> None:
    store = lives(
        node("n1"),
        resource_slice("s", "n1", 0, 4),
        claimed("c", pod_uid="p"),
        pod("p", 1, bound=2, gpus=0, **own_claim("c")),
    )
    assert (value(store, "held_gpus", AFTER), value(store, "free_gpus", AFTER)) == (1, 3)


def test_gpus_of_a_device_plugin_are_not_counted_again_as_devices() -> None:
    assert value(lives(node("n1", gpus=8), resource_slice("s", "n1", 0, 8)), "free_gpus", AFTER) == 8


def test_a_new_generation_of_slices_takes_the_place_of_the_old_one() -> None:
    feed = Feed()
    old = resource_slice("old", "n1", 5, 4)
    for one in (node("n1"), old):
        feed.see("ADDED", one, at(6))
    feed.settled()
    feed.see("ADDED", resource_slice("new", "n1", 10, 2, generation=2), at(10))
    feed.see("DELETED", old, at(11))
    store = feed.settled()
    # The node was read at minute 6, with what had been offered on it since minute 5.
    first, second = ms(6), ms(10)
    assert capacity(store) == [(first, second, 4_000_000), (second, None, 2_000_000)]


def test_what_a_slice_offered_is_gone_with_it() -> None:
    feed = Feed()
    offered = resource_slice("s", "n1", 0, 4)
    for one in (node("n1"), offered):
        feed.see("ADDED", one, at(1))
    feed.see("DELETED", offered, at(20))
    store = feed.settled()
    assert capacity(store) == [(ms(1), ms(20), 4_000_000), (ms(20), None, 0)]


def test_a_queue_of_kai_is_known_though_nobody_waits_in_it() -> None:
    store = lives(made("scheduling.run.ai/v2", "Queue", "team-a", 3, spec={}))
    assert store.rows("select queue, kind from live_queue") == [{"queue": "team-a", "kind": "KaiQueue"}]
    assert store.rows("select start_ms, end_ms from live_queue") == [{"start_ms": ms(3), "end_ms": None}]


def test_a_kind_of_jobs_that_the_site_names_is_one_workload() -> None:
    spark = [pod(name, 1, bound=2, owner="SparkApplication/spark") for name in ("driver", "executor")]
    known: dict[bool, list[str]] = {}
    for named in (False, True):
        kinds = frozenset({"SparkApplication"}) if named else frozenset()
        feed = Feed()
        feed.refresher = Refresher(store=feed.store, policy=Policy(job_kinds=kinds))
        for one in spark:
            feed.see("ADDED", one, at(5))
        rows = feed.settled().rows("select workload_uid as uid from workload order by uid")
        known[named] = [str(row["uid"]) for row in rows]
    assert known == {False: ["driver", "executor"], True: ["spark"]}


def test_of_the_time_before_nodes_were_read_nothing_is_said() -> None:
    feed = Feed()
    feed.see("ADDED", node("n1"), at(6))
    feed.see("ADDED", node("n2"), at(9))
    store = feed.settled()
    starts = store.rows("select node, start_ms from node_span order by node")
    # Nobody knows what n1 was before. n2 may have joined when it says: then we were watching.
    assert [(row["node"], row["start_ms"]) for row in starts] == [("n1", ms(6)), ("n2", ms(6))]
