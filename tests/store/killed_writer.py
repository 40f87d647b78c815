"""
A collector that can be killed: reads batches of Events, takes them in, and says what is committed.

It is put together as `service.collecting` does it: a journal, and a sink that waits. With each Event a
namespace is described anew.

Each line on standard input is `{"batch": 7, "rows": [[uid, version], ...], "killed": ""}`; the
number of the batch is printed when it is acknowledged. `killed` lets it die by SIGKILL "before
commit", "between append and state" or "after commit, before ack".
"""

import json
import os
import signal
import sys
import threading
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from typing_extensions import override

from collector.intake import Intake
from collector.journal import Journal, JournaledIntake
from collector.shared_intake import TakesIn
from collector.translator import find
from domain.facts import Batch
from service.alarms import Alarms
from service.patience import PatientSink, Room
from store import facts
from store.embedded import Store

CLUSTER = "city"


class DyingStore(Store):
    """A store that dies when it is told to."""

    killed = ""

    @override
    def append(self, batch: Batch) -> int:
        if self.killed == "between append and state":
            batch = replace(batch, objects={}, marks={})
        if self.killed in {"before commit", "between append and state"}:
            with self.transaction() as connection:
                facts.write(self, connection, batch, after_seq=0)
                os.kill(os.getpid(), signal.SIGKILL)
        appended = super().append(batch)
        if self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        return appended


def journal_beside(path: Path) -> Path:
    """Where the journal of a store lies."""
    return path.with_suffix(".journal")


def begun(store: Store, path: Path) -> JournaledIntake:
    """An intake as a process begins it."""
    known = store.known(CLUSTER)
    journal = Journal(journal_beside(path), most_bytes=1 << 30, marks=known.marks)
    sink = PatientSink(
        store, room=Room(path.parent, 0), alarms=Alarms(), stop=threading.Event(), before=journal.commit
    )
    return JournaledIntake(Intake(CLUSTER, sink, known), journal)


def take_in(intake: TakesIn, rows: list[tuple[str, int]]) -> None:
    """Let an intake see an Event and a namespace for each row, and commit."""
    events, namespaces = find("", "Event"), find("", "Namespace")
    assert events is not None
    assert namespaces is not None
    for uid, version in rows:
        metadata = {"uid": uid, "resourceVersion": str(version), "namespace": "nlp", "name": uid}
        intake.see(events, "MODIFIED", {"metadata": metadata, "reason": "Scheduled"}, version)
        described = metadata | {"uid": f"namespace/{uid}", "labels": {"version": str(version)}}
        intake.see(namespaces, "MODIFIED", {"metadata": described}, version)
    intake.flush()


def write_until_killed(path: Path, orders: Connection) -> None:
    """As `main`, with orders and acknowledgements through a connection."""
    store = DyingStore.open(path)
    intake = begun(store, path)
    while True:
        order = orders.recv()
        store.killed = order.get("killed", "")
        take_in(intake, order["rows"])
        orders.send(order["batch"])


def main() -> None:
    path = Path(sys.argv[1])
    store = DyingStore.open(path)
    intake = begun(store, path)
    for line in sys.stdin:
        order = json.loads(line)
        store.killed = order.get("killed", "")
        take_in(intake, order["rows"])
        sys.stdout.write(f"{order['batch']}\n")
        sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    main()
