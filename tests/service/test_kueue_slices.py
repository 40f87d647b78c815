"""Elastic slices and concurrent variants of Kueue: several Workloads, one workload, counted once."""

from collections.abc import Iterator
from typing import Any

import pytest

from api.answers import ListQuestion, Question
from collector.intake import Intake
from collector.translator import find
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, format_instant, parse_instant
from service.answers import Answers
from service.refresh import Refresher
from store.embedded import Store

NOON = parse_instant("2026-05-04T12:00:00Z")
AFTER = NOON + 3_600_000
SLICE_OF, VARIANT_OF = (
    "kueue.x-k8s.io/workload-slice-replacement-for",
    "kueue.x-k8s.io/concurrent-admission-parent",
)
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job", "controller": True}


def stamp(minute: float) -> str:
    return format_instant(NOON + round(60_000 * minute))


def condition(kind: str, minute: float, *, reason: str = "", status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason or kind, "lastTransitionTime": stamp(minute)}


def workload(
    name: str, minute: float, *conditions: dict[str, str], gpus: int, version: int = 1, **more: Any
) -> dict[str, Any]:
    """A Workload of the job with so many pods of one GPU each; with QuotaReserved it is admitted on a100."""
    admitted = any(one["type"] == "QuotaReserved" and one["status"] == "True" for one in conditions)
    assignment = {"name": "main", "count": gpus, "flavors": {"nvidia.com/gpu": "a100"}}
    assignment |= {"resourceUsage": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    status: dict[str, Any] = {"conditions": list(conditions), **more.pop("status", {})}
    if admitted:
        status["admission"] = {"clusterQueue": "main", "podSetAssignments": [assignment]}
    metadata = {
        "uid": name, "name": name, "namespace": "red", "creationTimestamp": stamp(minute),
        "resourceVersion": str(version), "ownerReferences": [OWNER], **more,
    }  # fmt: skip
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata,
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": gpus, "template": template}]},
        "status": status,
    }  # fmt: skip


def pod(name: str, minute: float, *, ended: float | None = None) -> dict[str, Any]:
    began = stamp(minute)
    over = {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": stamp(ended or 0)}
    state: dict[str, Any] = {"running": {"startedAt": began}} if ended is None else {"terminated": over}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "uid": name, "name": name, "namespace": "red", "creationTimestamp": began,
            "resourceVersion": "1" if ended is None else "2",
            "ownerReferences": [OWNER],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {
            "phase": "Running" if ended is None else "Succeeded",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": began}],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
        },
    }  # fmt: skip


NODE = {
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"uid": "n1", "name": "n1", "creationTimestamp": stamp(-60), "resourceVersion": "1"},
    "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}},
}  # fmt: skip
ADMITTED = ("QuotaReserved", "Admitted")


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store.open(None)
    yield made
    made.close()


def read(store: Store, *objects: tuple[float, dict[str, Any]]) -> dict[str, Any]:
    """Read objects at their minutes; the one workload that they make, in full."""
    intake = Intake("c", store, store.known("c"))
    for minute, written in objects:
        translator = find(written["apiVersion"].rpartition("/")[0], written["kind"])
        assert translator is not None
        intake.see(translator, "MODIFIED", written, NOON + round(60_000 * minute))
    intake.flush()
    Refresher(store=store).refresh()
    answers = answers_of(store)
    (row,) = answers.workloads(ListQuestion()).rows
    found = answers.workload(row["uid"])
    assert found is not None
    return found


def answers_of(store: Store) -> Answers:
    return Answers(store, Tenancy(), Policy(), FixedClock(AFTER))


def total(store: Store, metric: str, minute: float) -> float | None:
    asked = Question(as_of_ms=NOON + round(60_000 * minute), by=())
    (row,) = answers_of(store).metric(metric, asked).rows
    return row.value


@pytest.mark.parametrize("replaced", ["Evicted", "Finished"])
def test_an_elastic_job_that_grows_is_neither_evicted_nor_failed_nor_counted_twice(
    store: Store, replaced: str
) -> None:
    first = [condition(kind, 1) for kind in ADMITTED]
    second = [condition(kind, 11) for kind in ADMITTED]
    gone = condition(replaced, 11, reason="WorkloadSliceReplaced")
    counted = {"schedulingStats": {"evictions": [{"reason": "WorkloadSliceReplaced", "count": 1}]}}
    grown: dict[str, Any] = {"annotations": {SLICE_OF: "red/a"}}
    running = read(
        store,
        (0, NODE),
        (1, workload("a", 0, *first, gpus=2)),
        (2, pod("p1", 1)),
        (2, pod("p2", 1)),
        (10, workload("b", 10, gpus=3, **grown)),
        (11, workload("a", 0, *first, gone, gpus=2, version=2, status=counted)),
        (11, workload("b", 10, *second, gpus=3, version=2, **grown)),
        (12, pod("p3", 12)),
    )
    assert (running["state"], running["evictions"], running["preemptions"]) == ("running", 0, 0)
    assert [attempt["outcome"] for attempt in running["attempts"]] == ["open"]
    assert total(store, "submitted_workloads", 30) == 1
    assert total(store, "held_gpus", 30) == 3
    assert total(store, "reserved_gpus", 30) == 3
    done = read(
        store,
        *[(40, pod(name, since, ended=39)) for name, since in (("p1", 1), ("p2", 1), ("p3", 12))],
        (
            40,
            workload(
                "b", 10, *second, condition("Finished", 39, reason="Succeeded"), gpus=3, version=3, **grown
            ),
        ),
    )
    assert (done["state"], done["outcome"]) == ("ended", "succeeded")


def test_of_concurrent_variants_the_one_that_got_furthest_tells_and_the_others_were_not_evicted(
    store: Store,
) -> None:
    of_parent: dict[str, Any] = {"labels": {VARIANT_OF: "p"}}
    quota = condition("QuotaReserved", 5)
    out = condition("Evicted", 6, reason="Deactivated")
    found = read(
        store,
        (0, NODE),
        (0, workload("p", 0, gpus=4)),
        (1, workload("v1", 1, gpus=4, **of_parent)),
        (1, workload("v2", 2, gpus=4, **of_parent)),
        (5, workload("v1", 1, quota, gpus=4, version=2, **of_parent)),
        (6, workload("v2", 2, out, gpus=4, version=2, **of_parent)),
    )
    assert (found["state"], found["evictions"], found["requested_gpus"]) == ("checking", 0, 4.0)
    assert total(store, "submitted_workloads", 30) == 1
    assert total(store, "queue_depth_workloads", 4) == 1
    assert total(store, "queue_depth_gpus", 4) == 4
    assert total(store, "reserved_gpus", 30) == 4
