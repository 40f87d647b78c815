"""A live reading of the fake cluster, in a thread, into memory."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from kubernetes.client import Configuration

from collector.intake import Intake
from collector.kube.client import Connection
from collector.kube.watch_steps import Pace
from collector.live import run_cluster
from collector.sink import FactSink
from collector.translator import TRANSLATORS
from domain.facts import Moment, ObjectKind, SourceMark, Transition
from domain.window import parse_instant
from tests.fake_cluster import FakeCluster
from tests.fakes import MemorySink

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
START_MS = parse_instant("2026-05-04T09:00:00Z")
# Nobody waits so long but for what does not come: on a loaded machine a thread may stand for seconds.
PATIENCE_SECONDS = 120.0
# Between questions over HTTP: who asks all the time leaves little of it for what is waited for.
ASKS_EVERY_SECONDS = 0.2
# As the product's, but with delays that a test can wait for.
QUICK = Pace(first_delay_seconds=0.01, longest_delay_seconds=0.05, probe_seconds=0.05, flush_seconds=0.01)


@dataclass(slots=True)
class HandClock:
    """Moves when the test moves it."""

    at_ms: int = START_MS

    def now_ms(self) -> int:
        return self.at_ms

    def move_to(self, instant: str) -> int:
        self.at_ms = parse_instant(instant)
        return self.at_ms


@dataclass(slots=True)
class Reading:
    """What a test sees of a running reading."""

    sink: MemorySink
    clock: HandClock
    stop: threading.Event
    thread: threading.Thread
    errors: list[BaseException] = field(default_factory=list)

    def mark(self, kind: ObjectKind = ObjectKind.POD) -> SourceMark:
        with self.sink.lock:
            return self.sink.marks[kind]

    def has_mark(self, kind: ObjectKind, last_error: str) -> bool:
        with self.sink.lock:
            mark = self.sink.marks.get(kind)
        return (
            mark is not None
            and mark.last_error.startswith(last_error)
            and bool(mark.last_error) == bool(last_error)
        )

    def of(self, uid: str, moment: Moment) -> list[Transition]:
        with self.sink.lock:
            return [one for one in self.sink.transitions if (one.uid, one.moment) == (uid, moment)]

    def live(self) -> set[str]:
        with self.sink.lock:
            return {uid for uid, state in self.sink.objects.items() if state.gone_ms is None}


def until(holds: Callable[[], bool], *, pause: float = 0.005) -> None:
    """Wait for something that threads bring about, looking after each pause."""
    give_up, never = monotonic() + PATIENCE_SECONDS, threading.Event()
    while not holds():
        assert monotonic() < give_up, "it did not come about in time"
        never.wait(pause)


@contextmanager
def reading(
    cluster: FakeCluster,
    *,
    sink: FactSink | None = None,
    memory: MemorySink | None = None,
    clock: HandClock | None = None,
    pace: Pace = QUICK,
) -> Iterator[Reading]:
    """Read the cluster until the block ends; an error of the reading fails the test."""
    memory = memory or MemorySink()
    clock = clock or HandClock()
    stop = threading.Event()
    keeper = sink or memory
    errors: list[BaseException] = []

    def run() -> None:
        try:
            run_cluster(
                "c",
                connection=Connection(Configuration(host=cluster.url)),
                intake=Intake("c", keeper, keeper.known("c"), live=True),
                translators=TRANSLATORS,
                clock=clock,
                stop=stop,
                pace=pace,
                draw=lambda: 0.0,
            )
        except BaseException as error:  # noqa: BLE001 - the test's thread asks for it
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    live = Reading(memory, clock, stop, thread, errors)
    try:
        yield live
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    if sink is None:
        assert errors == []


def pod(uid: str, *, node: str = "") -> dict[str, Any]:
    """A pod of 4 GPUs; with a node it was bound one minute after its creation."""
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-05-04T08:01:00Z"}
    return {
        "metadata": {
            "uid": uid,
            "name": f"pod-{uid}",
            "namespace": "team",
            "creationTimestamp": "2026-05-04T08:00:00Z",
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "4"}}}],
        },
        "status": {"phase": "Pending", "conditions": [bound] if node else []},
    }


def node(uid: str) -> dict[str, Any]:
    """A node of 8 GPUs."""
    return {
        "metadata": {"uid": uid, "name": uid, "creationTimestamp": "2026-05-04T08:00:00Z"},
        "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}},
    }


def workload(uid: str) -> dict[str, Any]:
    """A Kueue Workload."""
    return {
        "metadata": {
            "uid": uid,
            "name": uid,
            "namespace": "team",
            "creationTimestamp": "2026-05-04T08:00:00Z",
        },
        "spec": {"queueName": "q", "podSets": []},
    }
