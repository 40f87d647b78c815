"""Courses of workloads in a store, as facts and derived rows; and a crash loop as its objects tell of it."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from analytics.wastage.course import Course
from analytics.wastage.idle import Slot
from collector.intake import Intake
from domain.policy import Policy
from domain.window import format_instant
from service.wastage import Wastage
from store.derived import Replacement
from store.embedded import Store
from store.gpu_samples import Read
from store.lives import Watermark
from tests.collector.objects import POD, at

CLUSTER = "east"
MINUTE = 60
Rows = list[dict[str, Any]]


def accounted(courses: Sequence[Course], *, policy: Policy | None = None) -> Store:
    """A store with these courses, the first as workload and team `w0`, accounted."""
    store = Store.open(None)
    write(store, courses)
    Wastage(store, policy or Policy()).refresh(CLUSTER, 0)
    return store


def write(store: Store, courses: Sequence[Course], *, seq: int = 1) -> None:
    """Put courses into the tables of lives, activity and facts."""
    named = {f"w{number}": course for number, course in enumerate(courses)}
    tables: dict[str, Rows] = {name: [] for name in _TABLES}
    for uid, course in named.items():
        for name, rows in _rows(uid, course).items():
            tables[name] += [{"cluster": CLUSTER, "workload_uid": uid} | row for row in rows]
    spans = tables.pop("activity_span")
    store.write_lives(CLUSTER, list(named), tables, Watermark("lives", seq))
    store.replace(CLUSTER, [Replacement(table="activity_span", rows=spans)])


_TABLES = ("workload", "span", "attempt", "holding", "run", "member", "activity_span", "checkpoint_told")


def _rows(uid: str, course: Course) -> dict[str, Rows]:
    found: dict[str, Rows] = {name: [] for name in _TABLES}
    found["workload"] = [_workload(uid, course)]
    found["member"] = [{"object_uid": f"{uid}-a", "kind": "Pod"}]
    found["checkpoint_told"] = [{"at_ms": at_ms} for at_ms in course.checkpoints_ms]
    for span in course.spans:
        found["span"].append(
            {
                "state": span.state,
                "start_ms": span.start_ms,
                "end_ms": span.end_ms,
                "start_earliest_ms": None,
                "reason": "",
                "first_wait": span.first_wait,
            }
        )
    for attempt in course.attempts:
        found["attempt"].append(
            {
                "number": attempt.number,
                "start_ms": attempt.start_ms,
                "end_ms": attempt.end_ms,
                "outcome": attempt.outcome,
                "reason": "",
                "preempted_by": "",
                "source": "pods",
            }
        )
    for holding in course.holdings:
        row = {name: getattr(holding, name) for name in type(holding).__slots__ if name != "runs"}
        found["holding"].append(row | {"pod_uid": f"{uid}-{holding.pod_uid}"})
        found["run"] += [
            {
                "pod_uid": f"{uid}-{holding.pod_uid}",
                "start_ms": run.start_ms,
                "end_ms": run.end_ms,
                "exit_code": run.exit_code,
                "reason": "",
            }
            for run in holding.runs
        ]
    for device in course.devices:
        found["activity_span"] += [
            _slot(slot, pod_uid=f"{uid}-{device.pod_uid}", device=device.name, micro_gpus=device.micro_gpus)
            for slot in device.slots
        ]
    return found


def _slot(slot: Slot, **of: object) -> dict[str, Any]:
    return of | {"start_ms": slot.start_ms, "end_ms": slot.end_ms, "level": slot.level.value}


def _workload(uid: str, course: Course) -> dict[str, Any]:
    return {
        "kind": "Job",
        "namespace": "red",
        "name": uid,
        "job_uid": "",
        "team": uid,
        "user_name": "ada",
        "project": "",
        "queue": "main",
        "priority_class": "",
        "service_class": "batch",
        "gpu_model": "A100",
        "gang_size": 1,
        "requested_micro_gpus": course.requested_micro_gpus,
        "submitted_ms": 0,
        "first_placed_ms": None,
        "first_running_ms": None,
        "ended_ms": None,
        "ended_earliest_ms": None,
        "outcome": "open",
        "skewed": "",
    }


# ------------------------------------------------------------ objects


def crash_loop(store: Store, *, gpus: int, starts: Sequence[float], run: float) -> None:
    """
    A pod of its own on node n1 that starts so many minutes after the start, and crashes each time.

    It is bound when it first starts, and gives up after the last crash.
    """
    intake = Intake(CLUSTER, store, store.known(CLUSTER))
    last = None
    for number, start in enumerate(starts):
        running = {"running": {"startedAt": _stamp(start)}}
        _see(intake, start, 2 * number, _status(number, running, last, "Running"), gpus=gpus)
        times = {"startedAt": _stamp(start), "finishedAt": _stamp(start + run)}
        over = {"terminated": {"exitCode": 1, "reason": "Error", **times}}
        ended = number == len(starts) - 1
        phase = "Failed" if ended else "Running"
        _see(intake, start + run, 2 * number + 1, _status(number, over, last, phase), gpus=gpus)
        last = over
    intake.flush()


def busy(store: Store, *, gpus: int, minutes: float) -> None:
    """Samples of so many devices of node n1 that work for the pod all the while, two a minute."""
    step_ms = 30_000
    instants = range(at(0), at(minutes * MINUTE), step_ms)
    frame = pl.DataFrame(
        [
            {
                "node": "n1",
                "device": f"GPU-{gpu}",
                "gpu_model": "A100",
                "namespace": "t",
                "pod": "looping",
                "pod_uid": "looping",
                "shares": 0,
                "pod_shares": 0,
                "per_process": False,
                "at_ms": at_ms,
                "step_ms": step_ms,
                "activity": 0.9,
                "engine": True,
                "memory_mib": 1000.0,
                "memory_total_mib": 80_000.0,
                "micro_gpus": 1_000_000,
            }
            for gpu in range(gpus)
            for at_ms in instants
        ]
    )
    mark = Read(until_ms=at(minutes * MINUTE), seen_ms=at(minutes * MINUTE))
    store.append_samples(CLUSTER, "test", frame=frame, mark=mark, set_aside={})


def _see(intake: Intake, minute: float, version: int, status: dict[str, Any], *, gpus: int) -> None:
    resources = {"limits": {"nvidia.com/gpu": gpus}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "uid": "looping",
            "name": "looping",
            "namespace": "t",
            "resourceVersion": str(version + 1),
            "creationTimestamp": _stamp(0),
        },
        "spec": {"containers": [{"name": "main", "resources": resources}], "nodeName": "n1"},
        "status": status,
    }
    intake.see(POD, "MODIFIED" if version else "ADDED", pod, at(minute * MINUTE))


def _status(restarts: int, state: dict[str, Any], last: dict[str, Any] | None, phase: str) -> dict[str, Any]:
    container = {"name": "main", "restartCount": restarts, "state": state, "lastState": last or {}}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _stamp(0)}
    return {"phase": phase, "conditions": [bound], "containerStatuses": [container]}


def _stamp(minute: float) -> str:
    return format_instant(at(minute * MINUTE))
