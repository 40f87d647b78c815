"""
What it costs to take things in, from bytes to durable rows: `python -m benchmarks.ingest [--quick]`.

Each figure is CPU time of the whole process, DuckDB's threads included, against a peer in the same run.
Exits with 1 where a goal is missed.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final, cast

import msgspec
import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.exporter_texts import GPUS, METRICS, answer
from benchmarks.figures import Figure, compared, cpu_seconds, tell
from benchmarks.pod_stream import START_MS, pod_events
from collector.dcgm.rounds import Answer, Exporters
from collector.intake import Intake
from collector.kube.client import Connection
from collector.kube.pod import Status
from collector.kube.watch import KindReader
from collector.kube.watch_steps import Pace, Place
from collector.raw import OwnerReference, Part, PodSpec, Strings
from collector.shared_intake import SharedIntake
from collector.translator import find
from domain.facts import Batch, Moment, ObjectKind, ObjectState, Transition
from domain.window import FixedClock
from store.embedded import Store
from store.gpu_samples import Read

_CLUSTER: Final = "north"
_STEP_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done: pods, batches of facts, nodes with exporters, and how often."""

    pods: int = 6_000
    batches: int = 20
    nodes: int = 10_000
    stock_nodes: int = 100
    rounds: int = 5


QUICK: Final = Size(pods=2_500, batches=8, nodes=2_000, stock_nodes=50, rounds=3)
# As many as make a batch of samples: 8 each.
_GROUP: Final = 1_250
# Facts of a batch.
_BATCH_ROWS: Final = 10_000


@contextmanager
def _store() -> Iterator[Store]:
    with TemporaryDirectory(prefix="benchmark") as folder:
        store = Store.open(Path(folder) / "facts.duckdb")
        try:
            yield store
        finally:
            store.close()


# ------------------------------------------------------------ Pod events


class KeptMetadata(Part):
    """As `collector.raw.Metadata`, with every part decoded."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    owner_references: list[OwnerReference] | None = None


class KeptPod(Part, kw_only=True):
    """The fields of a Pod that the product keeps, as one typed struct: what decoding alone gives."""

    api_version: str | None = None
    kind: str | None = None
    metadata: KeptMetadata
    spec: PodSpec
    status: Status


@dataclass(slots=True)
class _Watch:
    """A connection whose watch gives these lines and then ends."""

    lines: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def stream(self, *_: object, **__: object) -> "_Watch":
        return self

    def release(self, stream: "_Watch") -> None:
        """Nothing is held."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.lines)


def pod_figures(size: Size) -> list[Figure]:
    """Full Pod events to durable rows, against decoding them alone."""
    translator = find("", "Pod")
    assert translator is not None
    timed = [(event.line, event.observed_ms, event.object) for event in pod_events(size.pods)]
    lines = [line for line, _, _ in timed]
    bodies = [body for _, _, body in timed]
    decoder = msgspec.json.Decoder(KeptPod)
    total = sum(map(len, bodies))

    def decoding() -> float:
        def decode() -> None:
            for body in bodies:
                decoder.decode(body)

        return cpu_seconds(decode)

    def serving() -> float:
        with _store() as store:
            intake = SharedIntake(Intake(_CLUSTER, store, store.known(_CLUSTER)))
            reader = KindReader(
                translator,
                connection=cast("Connection", _Watch(lines)),
                intake=intake,
                clock=FixedClock(START_MS + 10**8),
                stop=threading.Event(),
                pace=Pace(),
            )

            def read() -> None:
                reader.watch(Place(resource_version="1"))
                intake.flush()

            return cpu_seconds(read)

    def importing() -> float:
        with _store() as store:
            intake = Intake(_CLUSTER, store, store.known(_CLUSTER))

            def read() -> None:
                for line, at_ms, _ in timed:
                    intake.see_line(translator, line, at_ms)
                intake.flush()

            return cpu_seconds(read)

    scan = len(bodies) / cpu_seconds(lambda: [body.count(b"\n") for body in bodies])
    told = f"of {total / len(bodies):,.0f} B read from memory"
    return [
        _figure("Pod events, watched", serving, decoding, size, len(bodies), goal=0.4, limit=scan, of=told),
        _figure(
            "Pod events, imported", importing, decoding, size, len(bodies), goal=0.4, limit=scan, of=told
        ),
    ]


# ------------------------------------------------------------ facts


def _facts(number: int, *, states: bool) -> Batch:
    # Each object is told of twice: every other batch is of objects that are known.
    first = number // 2 * _BATCH_ROWS
    transitions = [
        Transition(
            uid=f"5f1e0000-0000-4000-8000-{first + place:012x}", kind=ObjectKind.POD,
            moment=Moment.CONDITION, at_ms=START_MS + place, observed_ms=START_MS + place + 40,
            subject="ContainersReady", state="False", reason="ContainersNotReady",
            detail="containers with unready status: [trainer]",
        )
        for place in range(_BATCH_ROWS)
    ]  # fmt: skip
    objects = {
        one.uid: ObjectState(
            uid=one.uid, kind=one.kind, namespace="team-7", name=f"pretrain-{first + place:06d}-0-x1k2",
            resource_version=str(number * _BATCH_ROWS + place), seen_ms=one.observed_ms,
        )
        for place, one in enumerate(transitions)
    }  # fmt: skip
    return Batch(cluster=_CLUSTER, transitions=transitions, objects=objects if states else {})


def fact_figures(size: Size) -> list[Figure]:
    """Facts to durable rows, alone and with a row of state each, against bare Arrow appends."""
    import duckdb

    rows = size.batches * _BATCH_ROWS
    plain = [_facts(number, states=False) for number in range(size.batches)]
    stated = [_facts(number, states=True) for number in range(size.batches)]
    with _store() as store:
        schema = store.schema("transition")
    tables = [
        pa.table(
            [
                pa.repeat(_CLUSTER, _BATCH_ROWS) if name == "cluster"
                else pa.array(range(_BATCH_ROWS)) if name == "seq"
                else pa.array([getattr(one, name) for one in batch.transitions], schema.field(name).type)
                for name in schema.names
            ],
            schema=schema,
        )
        for batch in plain
    ]  # fmt: skip

    def bare() -> float:
        with (
            TemporaryDirectory(prefix="benchmark") as folder,
            duckdb.connect(Path(folder) / "bare.duckdb") as connection,
        ):
            connection.from_arrow(tables[0].slice(0, 0)).create("transition")

            def append() -> None:
                for table in tables:
                    connection.begin()
                    connection.from_arrow(table).insert_into("transition")
                    connection.commit()

            return cpu_seconds(append)

    def appending(batches: list[Batch]) -> Callable[[], float]:
        def append() -> float:
            with _store() as store:
                store.append(_facts(size.batches + 2, states=True))
                return cpu_seconds(lambda: [store.append(batch) for batch in batches])

        return append

    written = sum(table.nbytes for table in tables)
    with TemporaryDirectory(prefix="benchmark") as folder:
        limit = rows / _wall_seconds(lambda: _write(Path(folder) / "rows", tables))
    told = f"of {written / rows:.0f} B written and synced"
    return [
        _figure(
            "facts", appending(plain), bare, size, rows, goal=0.6, limit=limit, of=told, least=200_000
        ),
        _figure("facts with state", appending(stated), bare, size, rows, goal=0.25, limit=limit, of=told),
    ]  # fmt: skip


def _write(path: Path, tables: list[pa.Table]) -> None:
    for table in tables:
        with path.open("ab") as file:
            for column in table.columns:
                for chunk in column.chunks:
                    for buffer in filter(None, chunk.buffers()):
                        file.write(buffer)
            file.flush()
            os.fdatasync(file.fileno())


# ------------------------------------------------------------ texts of exporters


def exporter_figures(size: Size) -> list[Figure]:
    """Texts of exporters to durable samples, against parsing them with the stock parser."""
    names = [f"exporter/10.0.{node // 250}.{node % 250}:9400" for node in range(size.nodes)]
    per_node = GPUS * METRICS
    stock_texts = [answer(node, 1) for node in range(size.stock_nodes)]

    def stock() -> float:
        def parse() -> None:
            for text in stock_texts:
                for family in text_string_to_metric_families(text):
                    assert family.samples

        return cpu_seconds(parse) / size.stock_nodes

    warm: list[float] = []
    cold: list[float] = []
    with _store() as store:
        groups = [range(first, min(first + _GROUP, size.nodes)) for first in range(0, size.nodes, _GROUP)]
        exporters = [Exporters(_STEP_MS) for _ in groups]

        def scrape(number: int) -> float:
            spent = 0.0
            at_ms = START_MS + number * _STEP_MS
            for group, reader in zip(groups, exporters, strict=True):
                answers = [Answer(names[node], answer(node, number), at_ms) for node in group]
                began = process_time()
                read = reader.samples(answers)
                marks = {names[node]: Read(until_ms=at_ms + _STEP_MS, seen_ms=at_ms) for node in group}
                store.append_round(_CLUSTER, read.frame, marks, set_aside=read.set_aside)
                spent += process_time() - began
            return spent / size.nodes

        began = stock()
        cold += [scrape(0), began]
        number = iter(range(1, 1000))
        ours, theirs, ratio = compared(lambda: scrape(next(number)), stock, rounds=size.rounds)
        warm += [ours, theirs, ratio]
    text = stock_texts[0].encode()
    limit = per_node / (cpu_seconds(lambda: [text.count(b"\n") for _ in range(1000)]) / 1000)
    told = f"of {len(text) / per_node:.0f} B read from memory"
    return [
        Figure(
            name="exporter samples", product=per_node / warm[0], peer=per_node / warm[1], ratio=warm[2],
            goal=40, limit=limit, limit_of=told,
        ),
        Figure(
            name="the same, first round", product=per_node / cold[0], peer=per_node / cold[1],
            ratio=cold[1] / cold[0], goal=None, limit=limit, limit_of=told,
        ),
    ]  # fmt: skip


def _figure(  # noqa: PLR0913 - the parts of one figure
    name: str,
    product: Callable[[], float],
    peer: Callable[[], float],
    size: Size,
    count: int,
    *,
    goal: float,
    limit: float,
    of: str,
    least: float = 0.0,
) -> Figure:
    ours, theirs, ratio = compared(product, peer, rounds=size.rounds)
    return Figure(
        name=name, product=count / ours, peer=count / theirs, ratio=ratio, goal=goal, limit=limit,
        limit_of=of, least=least,
    )  # fmt: skip


def _wall_seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def main(arguments: list[str]) -> int:
    """Run what the arguments name, by default all; gives the exit status."""
    size = QUICK if "--quick" in arguments else Size()
    parts = {"pods": pod_figures, "facts": fact_figures, "exporters": exporter_figures}
    chosen = [part for name, part in parts.items() if name in arguments] or list(parts.values())
    return 0 if tell([figure for part in chosen for figure in part(size)]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
