"""A writer that is killed loses nothing that it acknowledged, and leaves no half of anything."""

import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from collector.intake import Intake
from domain.facts import ObjectKind
from store.embedded import Store
from tests.store.killed_writer import CLUSTER, take_in
from tests.store.killing import lines, stored, writer
from tests.store.kills import REPLAYED, ROWS, Found, kill_many_times, rows_of

QUEUED = 100
PIPE_BYTES = 65_536  # what is queued fits into the pipe, so that nobody waits for the writer
KILLS = 3
FORKED_KILLS = 50
# What a reopening after a kill may cost at most.
REOPENING_CPU_SECONDS = 1.0


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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [5, pytest.param(FORKED_KILLS, marks=pytest.mark.long)])
def test_kills_at_random_and_at_chosen_moments_lose_and_double_nothing(tmp_path: Path, kills: int) -> None:
    found = kill_many_times(tmp_path / "store.duckdb", kills, random.Random(1))
    assert (found.kills, found.lost, found.doubled, found.torn, found.unjournaled) == (kills, 0, 0, 0, 0)
    # At most the one batch in flight was committed without a word, each time.
    assert found.acknowledged > 0
    assert found.in_flight <= kills * ROWS
    assert max(found.reopening) < REOPENING_CPU_SECONDS


def test_what_is_lost_doubled_or_torn_is_counted_as_such(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    store = Store.open(path)
    intake = Intake(CLUSTER, store, store.known(CLUSTER))
    for batch in range(3):
        take_in(intake, rows_of(batch))
    store.close()
    found = Found()
    assert found.look(path, acknowledged=2) == 3
    assert (found.lost, found.doubled, found.torn, found.in_flight) == (0, 0, 0, 0)
    # Two batches more were acknowledged than there are; one less leaves one in flight.
    found.look(path, acknowledged=4)
    assert (found.lost, found.in_flight) == (4 * ROWS, 0)
    found.look(path, acknowledged=1)
    assert (found.lost, found.in_flight) == (4 * ROWS, ROWS)
    store = Store.open(path)
    with store.transaction() as connection:
        connection.execute("insert into event_sighting select * from event_sighting where uid = 'e1'")
        connection.execute("insert into description select * from description where uid = 'namespace/e2'")
        connection.execute("insert into transition select * from transition where uid = 'namespace/e3'")
        connection.execute("update source_mark set resource_version = '40' where kind = 'Event'")
    store.close()
    found = Found()
    found.look(path, acknowledged=2)
    # e1 has versions 1 and 31, e2 has 2 and 32, e3 was created; the mark stands a batch behind the facts.
    assert (found.lost, found.doubled, found.torn) == (0, 5, ROWS)
