"""
Cases drawn from public bug reports: why the next one waits.

The adapters write the cases' rows as objects of the API; the reasons come from the whole product.
"""

import pytest

from domain.window import parse_instant
from store.embedded import Store
from tests.cases.replay import CREATED, Json, answers, asking, case, queued_for, replay, truths, written
from tests.cases.test_fragmentation_cases import node, waiting
from tests.cases.test_lifecycle_cases import watched

NOON = "2026-05-04T12:00:00Z"
GPU = "nvidia.com/gpu"
# The words of F03 for our reasons.
WORDS = {"QUOTA_EXHAUSTED": "quota", "FRAGMENTATION": "fragmentation", "GANG_INCOMPLETE": "gang",
         "BEHIND_IN_QUEUE": "priority"}  # fmt: skip


def reasons(store: Store, uid: str, as_of: str = NOON) -> list[str]:
    found = answers(store, as_of).why(uid)
    assert found is not None
    return [one["reason"] for one in [found["primary"], *found["further"]] if one]


def in_queue(uid: str, gpus: int, *, admitted: bool) -> tuple[str, Json, str]:
    usage = {"flavors": {GPU: "f"}, "resourceUsage": {GPU: gpus}}
    admission = {"clusterQueue": "red", "podSetAssignments": [usage]} if admitted else None
    told = truths({"QuotaReserved": str(admitted), "Admitted": str(admitted)}, CREATED)
    spec = queued_for(gpus) | {"queueName": "red"}
    return (
        "ADDED",
        written("Workload", uid, spec=spec, status={"conditions": told, "admission": admission}),
        CREATED,
    )


def f03_site(queue: Json) -> list[tuple[str, Json, str]]:
    """The queue with its quota as it is now, and its door."""
    flavors = [{"name": "f", "resources": [{"name": GPU, "nominalQuota": str(queue["nominal_now"])}]}]
    return [
        ("ADDED", read, CREATED)
        for read in (
            written("ResourceFlavor", "f", spec={}),
            written(
                "ClusterQueue",
                "red",
                spec={"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]},
            ),
            written("LocalQueue", "red", apiVersion="kueue.x-k8s.io/v1beta2", spec={"clusterQueue": "red"}),
        )
    ]


def test_f03_after_a_cut_below_usage_the_next_job_waits_for_quota() -> None:
    given, expected = case("F03-quota-cut-below-usage")
    data = given["data"]
    store = replay(
        [
            *f03_site(data["queue"]),
            node(
                "n",
                data["cluster_free_gpus_on_one_node"],
                data["cluster_free_gpus_on_one_node"],
                cordoned=False,
            ),
            in_queue("w-runs", data["queue"]["usage"], admitted=True),
            in_queue("w-next", data["next_job_gpus"], admitted=False),
        ]
    )
    assert [WORDS[reason] for reason in reasons(store, "w-next")] == [expected["why_next_job_waits"]]


def test_d05_why_those_of_a_snapshot_wait() -> None:
    given, _ = case("D05-fragmentation-number")
    nodes = [
        node(n["name"], n["free"], n["free"], cordoned=n.get("cordoned", False))
        for n in given["data"]["nodes"]
    ]
    store = replay([*nodes, *map(waiting, given["data"]["snapshots"][0]["waiting"])])
    assert {job: reasons(store, job)[0] for job in ("j1", "j2", "j3")} == {
        "j1": "NODE_UNAVAILABLE",  # 4 GPUs on one node: only the cordoned one has as many
        "j2": "UNKNOWN",  # 2 pods of 2 GPUs fit on n1 and n3, and nobody says why they are not there
        "j3": "NEVER_FITS",  # 3 pods of 3 GPUs: n1 and n4 are all that take one each
    }


def test_w02_behind_a_gate_the_gate_is_the_reason() -> None:
    store = watched("W02-scheduling-gate-time")
    (pod,) = store.rows("select workload_uid as uid, submitted_ms from workload")
    (held,) = store.rows("select start_ms, end_ms from span where state = 'held'")
    at_ms = (int(str(held["start_ms"])) + int(str(held["end_ms"]))) // 2
    found = answers(store, at_ms).why(str(pod["uid"]))
    assert found is not None
    assert (found["waits"], found["primary"]["reason"]) == (False, "GATED")


@pytest.mark.long
def test_w01_while_it_backs_off_that_is_the_reason() -> None:
    store = watched("W01-evicted-then-requeued")
    (back,) = store.rows("select workload_uid as uid, start_ms, end_ms from span where state = 'backoff'")
    at_ms = (int(str(back["start_ms"])) + int(str(back["end_ms"]))) // 2
    found = answers(store, at_ms).why(str(back["uid"]))
    assert found is not None
    assert found["primary"]["reason"] == "BACKOFF"


@pytest.mark.long
def test_g09_a_reservation_without_pods_waits_for_nothing_that_a_scheduler_has() -> None:
    """It has its quota and no pod: that is what is told, and not a shortage of GPUs."""
    usage = {"flavors": {GPU: "f"}, "resourceUsage": {GPU: 8}}
    status = {
        "conditions": truths({"QuotaReserved": "True", "Admitted": "True"}, CREATED),
        "admission": {"clusterQueue": "red", "podSetAssignments": [usage]},
    }
    pod = written("Pod", "other", spec={"nodeName": "n1", **asking(1)}, status={"phase": "Running"})
    workload = written("Workload", "w1", spec=queued_for(8), status=status)
    store = replay(
        [("ADDED", workload, CREATED), ("ADDED", pod, CREATED), node("n1", 16, 16, cordoned=False)]
    )
    found = answers(store, parse_instant(NOON)).why("w1")
    assert found is not None
    assert (found["primary"]["reason"], found["primary"]["evidence"]["members"]) == ("GANG_INCOMPLETE", 0)
