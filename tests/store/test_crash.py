"""A writer that is killed loses nothing that it acknowledged, and leaves no half of anything."""

import random
import subprocess
import time
from collections import Counter
from pathlib import Path

from collector.intake import Intake
from domain.facts import ObjectKind
from store.embedded import Store
from tests.store.killed_writer import CLUSTER, take_in
from tests.store.killing import lines, stored, writer

ROWS = 20
UIDS = 30  # fewer than rows in two batches, so that most readings are newer ones of known objects
QUEUED = 100
PIPE_BYTES = 65_536  # what is queued fits into the pipe, so that nobody waits for the writer
KILLS = 3
REPLAYED = 3


def rows_of(batch: int) -> list[tuple[str, int]]:
    return [(f"e{version % UIDS}", version) for version in range(batch * ROWS + 1, (batch + 1) * ROWS + 1)]


def kill_at_random(process: subprocess.Popen[bytes], first: int) -> list[int]:
    """Let it write from batch `first` on, and kill it in the middle; gives what it acknowledged."""
    assert process.stdin is not None
    assert process.stdout is not None
    orders = lines({"batch": n, "rows": rows_of(n)} for n in range(first, first + QUEUED))
    assert len(orders) < PIPE_BYTES
    process.stdin.write(orders)
    process.stdin.flush()
    said = b"".join(process.stdout.readline() for _ in range(random.randint(1, QUEUED // 4)))
    end = time.monotonic() + random.uniform(0, 0.02)
    while time.monotonic() < end:
        pass
    process.kill()
    rest, _ = process.communicate()
    return [int(line) for line in (said + rest).splitlines(keepends=True) if line.endswith(b"\n")]


def test_every_acknowledged_batch_is_there_once_and_no_other_in_part(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    acknowledged: set[int] = set()
    for _ in range(KILLS):
        resume = max(acknowledged, default=-1) + 1
        with writer(path) as process:
            acknowledged.update(kill_at_random(process, max(0, resume - REPLAYED)))
        store = Store.open(path)
        found = Counter(stored(store))
        mark = store.known(CLUSTER).marks[ObjectKind.EVENT]
        batches = int(mark.resource_version) // ROWS
        assert found == Counter(row for batch in range(batches) for row in rows_of(batch))
        assert acknowledged <= set(range(batches))
        # At most the one batch in flight was committed without a word.
        assert batches <= max(acknowledged) + 2
        store.close()


def test_what_comes_again_after_a_kill_is_not_stored_again(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with writer(path) as process:
        acknowledged = kill_at_random(process, 0)
    store = Store.open(path)
    before = stored(store)
    intake = Intake(CLUSTER, store, store.known(CLUSTER))
    for batch in range(max(0, max(acknowledged) - REPLAYED), max(acknowledged) + 1):
        take_in(intake, rows_of(batch))
    assert stored(store) == before
    last = int(store.known(CLUSTER).marks[ObjectKind.EVENT].resource_version) // ROWS
    take_in(intake, rows_of(last))
    assert Counter(stored(store)) == Counter([*before, *rows_of(last)])
    store.close()
