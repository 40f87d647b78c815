"""Builders of derived rows: small lives of workloads, written into a real store in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.facts import Batch, ObjectKind, SourceMark
from domain.metric import Row
from domain.observed import Stretch
from domain.window import parse_instant
from store.embedded import Store
from store.lives import Watermark

NINE = parse_instant("2026-03-02T09:00:00Z")
MINUTE = 60_000


def at(minutes: float) -> int:
    """Milliseconds of so many minutes past nine."""
    return NINE + round(minutes * MINUTE)


# Columns that hardly any row is about.
_USUAL: dict[str, dict[str, Any]] = {
    "node_span": {"unpartitioned_micro_gpus": 0},
    "holding": {
        "cut": "",
        "cut_known_ms": None,
        "milli_cpus": None,
        "nodes": None,
        "memory_bytes": None,
        "other_asks": "",
    },
    "node_device": {"others": ""},
    "workload_shape": {"others": ""},
    "pod_device": {"others": ""},
}


@dataclass(slots=True)
class Books:
    """Rows by table, of one cluster."""

    cluster: str = "north"
    tables: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, table: str, **columns: Any) -> None:
        usual = _USUAL.get(table, {})
        self.tables.setdefault(table, []).append({"cluster": self.cluster, **usual, **columns})

    def write(self, store: Store) -> None:
        """Write all, with a mark that says it was read until twelve."""
        uids = [str(row["workload_uid"]) for row in self.tables.get("workload", ())]
        # Of facts that were appended before nothing is left to be cut.
        seq = store.changed_since(self.cluster, "lives").seq
        store.write_lives(self.cluster, uids, self.tables, Watermark("lives", seq))
        mark = SourceMark(kind=ObjectKind.POD, resource_version="1", epoch=0, seen_ms=at(180))
        seen = [Stretch(start_ms=NINE, end_ms=at(180))]
        store.append(Batch(cluster=self.cluster, marks={ObjectKind.POD: mark}, sights={ObjectKind.POD: seen}))


def make_workload(
    books: Books, uid: str, *, submitted: float = 0, gpus: float | None = 1, **columns: Any
) -> None:
    """A workload; instants are minutes past nine."""
    instants = {
        f"{name}_ms": None if columns.get(name) is None else at(columns[name])
        for name in ("first_placed", "first_running", "ended", "ended_earliest")
    }
    plain = {name: value for name, value in columns.items() if f"{name}_ms" not in instants}
    usual = {
        "workload_uid": uid, "kind": "Job", "namespace": "red", "name": uid, "job_uid": "", "team": "red",
        "user_name": "ada", "project": "", "queue": "main", "priority_class": "batch",
        "service_class": "batch",
        "gpu_model": "A100", "gang_size": 1, "outcome": "open", "skewed": "",
    }  # fmt: skip
    requested = None if gpus is None else round(gpus * 1_000_000)
    books.add(
        "workload", **(usual | plain | instants), submitted_ms=at(submitted), requested_micro_gpus=requested
    )


def make_span(
    books: Books, uid: str, state: str, start: float, end: float | None = None, *, first_wait: bool = False
) -> None:
    """A span in one state."""
    books.add(
        "span", workload_uid=uid, state=state, start_ms=at(start), end_ms=None if end is None else at(end),
        start_earliest_ms=None, reason="", first_wait=first_wait,
    )  # fmt: skip


def make_attempt(
    books: Books, uid: str, number: int, start: float, end: float | None = None, **columns: Any
) -> None:
    """An attempt with one pod that holds one GPU all the while."""
    end_ms = None if end is None else at(end)
    usual = {"outcome": "open", "reason": "", "preempted_by": "", "source": "pods"}
    books.add(
        "attempt", workload_uid=uid, number=number, start_ms=at(start), end_ms=end_ms, **(usual | columns)
    )
    books.add(
        "holding", workload_uid=uid, attempt=number, pod_uid=f"{uid}-{number}", pod_name=f"{uid}-{number}",
        node="n1", gpu_model="A100", micro_gpus=1_000_000, bound_ms=at(start), bound_earliest_ms=None,
        bound_source="condition",
        started_ms=at(start), released_ms=end_ms, released_earliest_ms=None, phase="Running", restarts=0,
    )  # fmt: skip


def make_eviction(books: Books, uid: str, minutes: float, *, preemptor: str = "", attempt: int = 1) -> None:
    """An eviction; a preemption where somebody took the place."""
    books.add(
        "eviction", workload_uid=uid, at_ms=at(minutes), preempted=bool(preemptor), reason="Preempted",
        mechanism="kueue_other", preemptor_uid=preemptor, attempt=attempt, missed=0, detail="",
    )  # fmt: skip


def busy_morning() -> Books:
    """
    Two teams. Red: `r-done` waited 10 min, ran, was preempted by blue's `b-run`, waited 5 min again,
    ran and ended at 60; `r-wait` waits since 30. Blue: `b-run` waited 20 min and runs; `b-wait` waits.
    """
    books = Books()
    make_workload(
        books, "r-done", first_placed=10, first_running=11, ended=60, ended_earliest=58, outcome="succeeded"
    )
    make_span(books, "r-done", "queued", 0, 10, first_wait=True)
    make_span(books, "r-done", "starting", 10, 11)
    make_span(books, "r-done", "running", 11, 25)
    make_span(books, "r-done", "queued", 25, 30)
    make_span(books, "r-done", "running", 30, 60)
    make_span(books, "r-done", "ended", 60)
    make_attempt(books, "r-done", 1, 10, 25, outcome="preempted", preempted_by="b-run")
    make_attempt(books, "r-done", 2, 30, 60, outcome="succeeded")
    make_eviction(books, "r-done", 25, preemptor="b-run")
    make_workload(books, "r-wait", submitted=30, service_class="interactive", user_name="bob")
    make_span(books, "r-wait", "queued", 30, first_wait=True)
    blue: dict[str, Any] = {"team": "blue", "namespace": "blue", "queue": "side"}
    make_workload(books, "b-run", submitted=5, first_placed=25, first_running=25, **blue)
    make_span(books, "b-run", "queued", 5, 25, first_wait=True)
    make_span(books, "b-run", "running", 25)
    make_attempt(books, "b-run", 1, 25)
    make_workload(books, "b-wait", submitted=40, **blue)
    make_span(books, "b-wait", "queued", 40, first_wait=True)
    return books


def filled(books: Sequence[Books] = ()) -> Store:
    """A store in memory with these books, by default the busy morning."""
    store = Store.open(None)
    for each in books or (busy_morning(),):
        each.write(store)
    return store
