"""
What is free and stranded in the recordings, by brute force.

City: from the truth's own free devices per node and its waiting workloads. The small recordings: from
the recorded objects themselves. Where something may stand is read from the recorded objects everywhere.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from analytics.fragmentation.pools import INVENTORY, pools
from api.answers import Question
from domain.policy import Policy
from domain.window import FixedClock
from service.answers import Answers
from store.embedded import Store
from tests.recordings.comparing import TENANCY, ground_truth, imported, rows, show
from tests.recordings.places import Grounds, first_written
from tests.shared import shared

pytestmark = [pytest.mark.recordings, pytest.mark.timeout(300)]

Free = dict[str, dict[str, int]]
# One workload that waits: how many pods want how many devices of which resource, and on which nodes.
Wanted = tuple[int, str, int, frozenset[str]]

# What is where at an instant, from tables that the figure does not rest on.
_NODES = """
select
    node,
    case when schedulable then allocatable_micro_gpus else 0 end as micro_gpus,
    coalesce(
        (
            select sum(holding.micro_gpus) from holding
            where
                holding.node = node_span.node
                and holding.bound_ms < $at_ms
                and coalesce(holding.released_ms >= $at_ms, true)
        ),
        0
    ) as held
from node_span
where start_ms < $at_ms and coalesce(end_ms >= $at_ms, true) and allocatable_micro_gpus > 0
"""
# Workloads that wait at an instant, with the pods that are bound already.
_WAITING = """
select
    workload_uid,
    queue,
    (
        select max(flavor) from reservation
        where
            reservation.workload_uid = workload_span.workload_uid
            and reservation.start_ms < $at_ms
            and coalesce(reservation.end_ms >= $at_ms, true)
    ) as flavor,
    (
        select arg_min(description.body, description.seq) from description
        where description.uid = workload_span.workload_uid
    ) as body,
    (
        select count(*) from holding
        where
            holding.workload_uid = workload_span.workload_uid
            and holding.bound_ms < $at_ms
            and coalesce(holding.released_ms >= $at_ms, true)
    ) as bound
from workload_span
where waits and start_ms < $at_ms and coalesce(end_ms >= $at_ms, true)
"""
GPU = "nvidia.com/gpu"


def brute_force(free: Free, waiting: list[Wanted]) -> dict[tuple[str, str], int]:
    """Free devices by node and resource that no placeable workload fills, counted pod by pod."""
    placeable = []
    for pods, resource, size, nodes in waiting:
        left = [devices.get(resource, 0) for node, devices in free.items() if node in nodes]
        placed = 0
        for place in range(len(left)):
            while left[place] >= size and placed < pods:
                left[place] -= size
                placed += 1
        if placed == pods:
            placeable.append((resource, size, nodes))
    wanted = {(node, resource) for _, resource, _, nodes in waiting for node in nodes}
    stranded = {}
    for node, devices in free.items():
        for resource, count in devices.items():
            fill = [
                max(range(0, count + 1, size))
                for name, size, nodes in placeable
                if name == resource and node in nodes
            ]
            stranded[node, resource] = count - max(fill, default=0) if (node, resource) in wanted else 0
    return stranded


def fragmented(store: Store, as_of_ms: int) -> dict[str, float]:
    """What the product says, by node; nodes without fragments left out."""
    answers = Answers(store, TENANCY, Policy(), FixedClock(as_of_ms))
    samples = answers.metric("fragmented_gpus", Question(by=("node",), window=timedelta(hours=1))).rows
    return {row.labels["node"]: row.value for row in samples if row.value}


def in_gpus(stranded: dict[tuple[str, str], int]) -> dict[str, float]:
    """GPUs by node: a share is a quarter, a slice of a MIG card a seventh, three slices three."""
    part = {"nvidia.com/gpu": Fraction(1), "nvidia.com/gpu.shared": Fraction(1, 4),
            "nvidia.com/mig-1g.10gb": Fraction(1, 7), "nvidia.com/mig-3g.40gb": Fraction(3, 7)}  # fmt: skip
    found: dict[str, Fraction] = {}
    for (node, resource), count in stranded.items():
        found[node] = found.get(node, Fraction()) + count * part[resource]
    return {node: float(gpus) for node, gpus in found.items() if gpus}


def same(said: dict[str, float], expected: dict[str, float]) -> bool:
    """Whether they agree to the micro-GPU, which a share of a card is rounded to."""
    return said == pytest.approx(expected, abs=2e-6)


# ---------------------------------------------------------------- native, kueue, volcano


def test_what_is_stranded_in_native_is_what_the_truths_pods_leave_over() -> None:
    store, truth, grounds = imported("native"), ground_truth("native"), Grounds.of("native")
    sizes = {n["name"]: n["gpus"] for n in json.loads(shared("data/recorded/native/nodes.json").read_text())}
    most = 0.0
    # Before node 3 is cordoned at 90 s, and not while pods come and go by the second.
    for second in (13, 15, 30, 35, 50, 55, 65):
        at = truth["epoch_start"] + second + 0.5
        free = {node: {GPU: count} for node, count in sizes.items()}
        waiting: list[Wanted] = []
        for pod in truth["pods"]:
            gone = pod["finished"] or pod["removed"]
            if pod["bound"] and pod["bound"] < at and not (gone and gone < at):
                free[pod["node"]][GPU] -= pod["gpus"]
            waits = pod["submitted"] and pod["submitted"] < at and not (pod["bound"] and pod["bound"] < at)
            if waits and not (pod["removed"] and pod["removed"] < at) and pod["name"] != "gated-0":
                waiting.append((1, GPU, pod["gpus"], grounds.open_to(grounds.specs[pod["uid"]])))
        waiting += [
            (1, GPU, job["gpus"], grounds.open_to(grounds.specs[f"{job['ns']}/{job['name']}"]))
            for job in truth["jobs"]
            if job["name"] == "quotajob" and job["t"] < at
        ]
        expected: dict[str, float] = {}
        for nodes in _pools(store).values():
            expected |= in_gpus(brute_force({node: free[node] for node in nodes}, waiting))
        show(f"native, second {second}: {len(waiting)} wait, stranded {sum(expected.values())}")
        assert same(fragmented(store, round(at * 1000)), expected)
        most = max(most, sum(expected.values()))
    assert most > 0


@pytest.mark.parametrize(("recording", "until"), [("kueue", 240), ("volcano", 175)])
def test_what_is_stranded_by_a_queueing_system_is_what_its_workloads_cannot_use(
    recording: str, until: int
) -> None:
    store, truth, grounds = imported(recording), ground_truth(recording), Grounds.of(recording)
    owned_by = {
        group["metadata"]["uid"]: group["metadata"]["ownerReferences"][0]["uid"]
        for group in first_written(recording, "podgroups")
    }
    jobs = {job["metadata"]["uid"]: job for job in first_written(recording, "vcjobs")}
    found = []
    for second in range(5, until, 5):
        at_ms = round(1000 * (truth["epoch_start"] + second))
        here = {row["node"]: row for row in rows(store, _NODES, at_ms=at_ms)}
        waiting: list[Wanted] = []
        for row in rows(store, _WAITING, at_ms=at_ms):
            body = json.loads(row["body"])
            job = jobs.get(owned_by.get(row["workload_uid"], ""))
            if job:
                (task,) = job["spec"]["tasks"]
                (container,) = task["template"]["spec"]["containers"]
                pods, size = task["replicas"], int(container["resources"]["limits"][GPU])
                spec = task["template"]["spec"]
            else:
                parts = [(part["count"], part["gpu_requests"][GPU]) for part in body.get("pod_sets", ())]
                ((pods, size),) = parts or [(1, body["gpu_requests"][GPU])]
                spec = grounds.specs[row["workload_uid"]]
            where = grounds.open_to(spec, resource=GPU, queue=row["queue"], flavor=row["flavor"] or "")
            waiting.append((pods - row["bound"], GPU, size, where))
        expected: dict[str, float] = {}
        for nodes in _pools(store).values():
            free = {
                node: {GPU: max(here[node]["micro_gpus"] - here[node]["held"], 0) // 1_000_000}
                for node in nodes
            }
            expected |= in_gpus(brute_force(free, waiting))
        assert same(fragmented(store, at_ms), expected), second
        found.append(sum(expected.values()))
    assert max(found) > 0
    show(f"{recording}: GPUs stranded at {len(found)} instants: {found}")


def _pools(store: Store) -> dict[str, list[str]]:
    """Nodes by the model of their GPUs."""
    found: dict[str, list[str]] = {}
    for row in rows(store, "select distinct gpu_model, node from node_span order by node"):
        found.setdefault(row["gpu_model"], []).append(row["node"])
    return found


# ---------------------------------------------------------------- city


# The kubelets' table lies up to 8 s behind, their stamps a second beside ours.
_LAG = 9.0


def _moved(truth: dict[str, Any], at: float) -> set[str]:
    """Nodes of which the kubelets' table need not agree at that instant: a pod came or went, a GPU died."""
    return {event["node"] for event in truth["node_log"] if event["a"] == "unhealthy_gpus"} | {
        pod["node"]
        for pod in truth["pods"]
        for name in ("bound", "finished", "deletion_seen", "released", "removed")
        if pod[name] and abs(pod[name] - at) < _LAG
    }


def _away(truth: dict[str, Any], at: float) -> set[str]:
    """Nodes on which nothing may be placed: cordoned by the script, or down."""
    steps = {"cordon": 1, "node_down": 1, "uncordon": 0, "node_back": 0}
    events = [event for event in (*truth["actions"], *truth["node_log"]) if event["a"] in steps]
    last = {event["node"]: steps[event["a"]] for event in sorted(events, key=lambda event: event["t"])
            if event["t"] <= at}  # fmt: skip
    return {node for node, gone in last.items() if gone}


def _waits_at(truth: dict[str, Any], at: float, grounds: Grounds) -> Iterator[Wanted]:
    """What waits by the truth; work behind its owner's gate does not."""
    pods = {pod["uid"]: pod for pod in truth["pods"]}
    for workload in truth["workloads"]:
        waits = any(start < at and (end is None or end > at) for start, end, _ in workload["waits"])
        if waits and workload["mark"] != "gate" and not workload["refused"]:
            its = [pods[uid] for uid in workload["pods"] if uid in pods]
            bound = sum(pod["bound"] < at and not (pod["released"] and pod["released"] < at) for pod in its)
            ((resource, size),) = workload["per_pod"].items()
            known = (uid for uid in (*workload["uids"], *workload["pods"]) if uid in grounds.specs)
            door = grounds.doors.get((workload["namespace"], workload["queue"]), "")
            nodes = grounds.open_to(grounds.specs[next(known)], resource=resource, queue=door)
            yield workload["par"] - bound, resource, size, nodes


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_is_free_and_stranded_in_city_is_what_the_truth_says() -> None:
    store, truth, grounds = imported("city"), ground_truth("city"), Grounds.of("city")
    agree: Counter[str] = Counter()
    stranded_gpus = 0.0
    for minute in truth["by_minute"]:
        if not minute["free"]:
            continue
        at, at_ms = minute["free_at"], round(1000 * minute["free_at"])
        away, moved = _away(truth, at), _moved(truth, at)
        theirs: Free = {
            node: {name: 0 if node in away else count for name, count in devices.items()}
            for node, devices in minute["free"].items()
        }
        ours = _free(store, at_ms)
        differing = {node for node, devices in theirs.items() if ours[node] != devices}
        agree.update(nodes=len(theirs), apart=len(differing), unexplained=len(differing - moved))
        waiting = list(_waits_at(truth, at, grounds))
        said = fragmented(store, at_ms)
        for nodes in _pools(store).values():
            if differing & set(nodes):
                continue
            expected = in_gpus(brute_force({node: theirs[node] for node in nodes}, waiting))
            agree.update(pools=1, equal=same({n: v for n, v in said.items() if n in nodes}, expected))
            stranded_gpus += sum(expected.values())
    show(f"city: {dict(agree)}, GPUs stranded over all minutes: {stranded_gpus}")
    assert agree["apart"] <= 0.04 * agree["nodes"]
    assert agree["unexplained"] == 0
    assert agree["equal"] == agree["pools"] > 90
    assert stranded_gpus > 0


def _free(store: Store, at_ms: int) -> Free:
    """Free devices as the figure's own rows have them."""
    return {
        node: dict(devices)
        for _, pool in pools(store.rows(INVENTORY, {"as_of_ms": at_ms}))
        for node, devices in pool.inventory.free.items()
    }
