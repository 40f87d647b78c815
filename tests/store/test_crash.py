"""A writer that is killed loses nothing that it acknowledged, and leaves no half of anything."""

import multiprocessing
import multiprocessing.process
import random
import signal
import subprocess
import time
from collections import Counter
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from collector.intake import Intake
from domain.facts import ObjectKind
from store.embedded import Store
from tests.store.killed_writer import CLUSTER, take_in, write_until_killed
from tests.store.killing import lines, stored, writer

ROWS = 20
UIDS = 30  # fewer than rows in two batches, so that most readings are newer ones of known objects
QUEUED = 100
PIPE_BYTES = 65_536  # what is queued fits into the pipe, so that nobody waits for the writer
KILLS = 3
FORKED_KILLS = 50
REPLAYED = 3
MOMENTS = ("before commit", "between append and state", "after commit, before ack", "", "")
TOTALS = """
select
    count(*)::bigint as rows,
    count(distinct uid || ' ' || resource_version)::bigint as different,
    max(resource_version::bigint) as newest
from event_sighting
"""


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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [5, pytest.param(FORKED_KILLS, marks=pytest.mark.long)])
def test_kills_at_random_and_at_chosen_moments_lose_and_double_nothing(tmp_path: Path, kills: int) -> None:
    kill_many_times(tmp_path / "store.duckdb", kills, random.Random(1))


def kill_many_times(path: Path, kills: int, chance: random.Random) -> Counter[str]:
    """Kill a writer so often, and look after each time; gives how often at which moment."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.store.killed_writer"])
    moments: Counter[str] = Counter()
    acknowledged = -1
    for _ in range(kills):
        moment = chance.choice(MOMENTS)
        moments[moment or "at random"] += 1
        ours, theirs = forks.Pipe()
        # What was acknowledged last comes again, as a watch repeats itself.
        first = max(0, acknowledged + 1 - REPLAYED)
        process = forks.Process(target=write_until_killed, args=(path, theirs))
        process.start()
        theirs.close()
        acknowledged = max(acknowledged, _order_until_killed(process, ours, first, moment, chance))
        process.join()
        assert process.exitcode == -signal.SIGKILL
        process.close()
        ours.close()
        store = Store.open(path)
        batches = int(store.known(CLUSTER).marks[ObjectKind.EVENT].resource_version) // ROWS
        (row,) = store.rows(TOTALS)
        store.close()
        assert row == {"rows": batches * ROWS, "different": batches * ROWS, "newest": batches * ROWS}
        assert acknowledged + 1 <= batches <= acknowledged + 2
        acknowledged = batches - 1
    return moments


def _order_until_killed(
    process: multiprocessing.process.BaseProcess,
    orders: Connection,
    first: int,
    moment: str,
    chance: random.Random,
) -> int:
    """Order batches until the writer is dead; gives the last one that it acknowledged."""
    acknowledged = -1
    dies_at = first + REPLAYED + 1 + chance.randrange(4)
    for batch in count(first):
        killed = moment if batch == dies_at else ""
        orders.send({"batch": batch, "rows": rows_of(batch), "killed": killed})
        if batch == dies_at and not moment:
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
        try:
            acknowledged = orders.recv()
        except (EOFError, ConnectionResetError):
            return acknowledged
        if batch > dies_at:
            process.kill()
    return acknowledged
