"""Open cases of GPU metrics: G01, G02, G03, G04, G08. An adapter only renames."""

from collections.abc import Iterator

from collector.dcgm.exporter import take_answer
from collector.dcgm.exposition import Reading, labels_of, readings
from collector.dcgm.samples import Gathered
from domain.gpu_sample import Device, Field, device_of, owner_of, value_of
from domain.window import parse_instant
from service.activity import Activity
from store.embedded import Store
from store.gpu_samples import Read
from tests.cases.replay import Feed, Json, case, check, value, written
from tests.shared import shared

AT = "2026-05-04T10:00:00Z"
AT_MS = parse_instant(AT)
AFTER = "2026-05-04T10:00:15Z"
STEP_MS = 15_000


def text_of(name: str) -> str:
    return (shared(f"data/cases/{name}") / "metrics.txt").read_text()


def lines_of(name: str) -> Iterator[Reading]:
    yield from readings(text_of(name), lambda family: family in set(Field), lambda _: None)


def read_into(store: Store, gathered: Gathered, step_ms: int) -> Store:
    """The store, after the samples were taken in and folded."""
    samples = gathered.samples(step_ms)
    store.append_samples("c", "exporter/n1", samples.frame, Read(until_ms=AFTER_MS, seen_ms=AFTER_MS))
    Activity(store).refresh("c", AFTER_MS)
    return store


AFTER_MS = parse_instant(AFTER)


def site(node: Json, pods: list[Json], name: str) -> Store:
    """A node with pods that run on it, and what its exporter answered once."""
    feed, gathered = Feed(), Gathered()
    status = {"allocatable": node["allocatable"], "capacity": node["allocatable"]}
    labels = {"labels": node.get("labels", {})}
    feed.see("ADDED", written("Node", "n1", metadata=labels, status=status), "2026-05-04T06:00:00Z")
    for pod in pods:
        asked = pod.get("requests", {"nvidia.com/gpu": str(pod.get("gpu"))})
        containers = [{"name": "main", "resources": {"limits": asked}}]
        bound = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-05-04T09:00:00Z"}]
        spec, running = (
            {"nodeName": "n1", "containers": containers},
            {"phase": "Running", "conditions": bound},
        )
        feed.see("ADDED", written("Pod", pod["name"], spec=spec, status=running), "2026-05-04T09:00:01Z")
    take_answer(gathered, text_of(name), AT_MS)
    return read_into(feed.settled(), gathered, STEP_MS)


def test_g01_time_slicing_shares() -> None:
    given, expected = case("G01-time-slicing-shares")
    store = site(given["data"]["node"], given["data"]["pods"], "G01-time-slicing-shares")
    (node,) = store.rows("select * from node_capacity")
    held = store.rows("select pod_name, micro_gpus / 1e6 as gpus from gpu_holding order by pod_name")
    answer = {
        "physical_gpus": int(str(node["capacity_micro_gpus"])) / 1e6,
        "allocated_physical": value(store, "held_gpus", AFTER),
        "node_util_pct": round(100 * (value(store, "gpu_activity_ratio", AFTER) or 0), 2),
        "pod_gpu_share": {row["pod_name"]: row["gpus"] for row in held},
    }
    check(answer, expected)
    # And whose of the 71.4 % is whose, nobody knows.
    assert {row["level"] for row in store.rows("select level from activity_span")} == {"shared"}


def test_g02_mig_slices() -> None:
    given, expected = case("G02-mig-slices")
    store = site(given["data"]["node"], given["data"]["pods"], "G02-mig-slices")
    (node,) = store.rows("select * from node_capacity")
    free = store.rows("select distinct device from gpu_hour where pod_uid = ''")
    answer = {
        "gpu_equivalents_capacity": round(int(str(node["capacity_micro_gpus"])) / 1e6, 4),
        "gpu_equivalents_allocated": round(value(store, "held_gpus", AFTER) or 0, 4),
        "device_util_pct": round(100 * (value(store, "gpu_activity_ratio", AFTER) or 0), 2),
        "idle_slices": len(free),
    }
    check(answer, expected)


def test_g03_dcgm_blanks_and_outliers() -> None:
    name = "G03-dcgm-blanks-and-outliers"
    found = [(line.name, value_of(Field(line.name), line.value)) for line in lines_of(name)]
    good = {kind: [v for n, v in found if n == kind and isinstance(v, float)] for kind in Field}
    answer = {
        "valid_gpu_util": len(good[Field.UTIL]),
        "mean_gpu_util": sum(good[Field.UTIL]) / len(good[Field.UTIL]),
        "mean_sm_active": sum(good[Field.SM]) / len(good[Field.SM]),
        "sum_fb_used_mib": sum(good[Field.USED]),
        "rejected": sum(not isinstance(v, float) for _, v in found),
    }
    assert answer == case(name)[1]
    # The way of whole columns decides as the definition does, value by value.
    gathered = Gathered()
    take_answer(gathered, text_of(name), AT_MS)
    samples = gathered.samples(STEP_MS)
    assert samples.frame["activity"].drop_nulls().sort().to_list() == [0.0, 0.55, 0.65]
    assert samples.frame["memory_mib"].sum() == 1000
    assert samples.set_aside.total() == 6  # SM_ACTIVE is no part of a sample


def test_g04_exported_pod_labels() -> None:
    name, owners = "G04-exported-pod-labels", {}
    for line in lines_of(name):
        labels = labels_of(line.labels)
        device, owner = device_of(labels), owner_of(labels)
        assert isinstance(device, Device)
        owners[device.uuid] = f"{owner.namespace}/{owner.pod}" if owner.pod else None
    assert {"owner_by_uuid": owners} == case(name)[1]


def test_g08_range_chunk_boundaries() -> None:
    given, expected = case("G08-range-chunk-boundaries")
    gathered, data = Gathered(), given["data"]
    series = gathered.series({"UUID": data["series"], "Hostname": "n1"})
    assert series is not None
    for chunk in data["chunks"]:
        instants = [at * 1000 for at, _ in chunk]
        gathered.add_all(series, Field.UTIL, instants, [percent for _, percent in chunk])
    store = read_into(Store.open(None), gathered, 60_000)
    (kept,) = store.rows("select count(*) as n, round(avg(activity) * 100, 4) as mean from gpu_sample")
    (busy,) = store.rows("select sum(active) / 1e9 as seconds from gpu_hour")
    check({"samples_kept": kept["n"], "mean": kept["mean"], "gpu_busy_seconds": busy["seconds"]}, expected)
