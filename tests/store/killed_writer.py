"""
A collector that can be killed: reads batches of Events, takes them in, and says what is committed.

Each line on standard input is `{"batch": 7, "rows": [[uid, version], ...], "killed": ""}`; the
number of the batch is printed when it is acknowledged. `killed` lets it die by SIGKILL "before
commit", "between append and state" or "after commit, before ack".
"""

import json
import os
import signal
import sys
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

from collector.intake import Intake
from collector.translator import find
from domain.facts import Batch, Known
from store import facts
from store.embedded import Store

CLUSTER = "city"


@dataclass(slots=True)
class DyingSink:
    """Keeps facts in a store and dies when it is told to."""

    store: Store
    killed: str = ""

    def known(self, cluster: str) -> Known:
        return self.store.known(cluster)

    def append(self, batch: Batch) -> int:
        if self.killed == "between append and state":
            batch = replace(batch, objects={}, marks={})
        if self.killed in {"before commit", "between append and state"}:
            with self.store.transaction() as connection:
                facts.write(self.store, connection, batch, after_seq=0)
                os.kill(os.getpid(), signal.SIGKILL)
        appended = self.store.append(batch)
        if self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        return appended


def take_in(intake: Intake, rows: list[tuple[str, int]]) -> None:
    """Let an intake see an Event for each row, and commit."""
    translator = find("", "Event")
    assert translator is not None
    for uid, version in rows:
        metadata = {"uid": uid, "resourceVersion": str(version), "namespace": "nlp", "name": uid}
        intake.see(translator, "MODIFIED", {"metadata": metadata, "reason": "Scheduled"}, version)
    intake.flush()


def write_until_killed(path: Path, orders: Connection) -> None:
    """As `main`, with orders and acknowledgements through a connection."""
    sink = DyingSink(Store.open(path))
    intake = Intake(CLUSTER, sink, sink.known(CLUSTER))
    while True:
        order = orders.recv()
        sink.killed = order.get("killed", "")
        take_in(intake, order["rows"])
        orders.send(order["batch"])


def main() -> None:
    store = Store.open(Path(sys.argv[1]))
    sink = DyingSink(store)
    intake = Intake(CLUSTER, sink, sink.known(CLUSTER))
    for line in sys.stdin:
        order = json.loads(line)
        sink.killed = order.get("killed", "")
        take_in(intake, order["rows"])
        sys.stdout.write(f"{order['batch']}\n")
        sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    main()
