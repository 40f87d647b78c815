"""
Many kills of a writer, at random and at chosen moments, with what was found after each.

As a command, with the number of kills, it prints the figures: python -m tests.store.kills 1000
"""

import argparse
import multiprocessing
import multiprocessing.process
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

from collector.replay import replay
from domain.facts import ObjectKind
from store.embedded import Store
from tests.store.killed_writer import CLUSTER, journal_beside, write_until_killed

ROWS = 20
UIDS = 30  # fewer than rows in two batches, so that most readings are newer ones of known objects
REPLAYED = 3
MOMENTS = ("before commit", "between append and state", "after commit, before ack", "", "")
TOTALS = """
select
    count(*)::bigint as rows,
    count(distinct uid || ' ' || resource_version)::bigint as different,
    coalesce(max(resource_version::bigint), 0) as newest,
    (select count(*) from description)::bigint as described,
    (select count(distinct uid || body) from description)::bigint as differently,
    (select count(*) - count(distinct uid || moment) from transition)::bigint as again
from event_sighting
"""
# Readings by what tells them apart.
READINGS = """
select uid || ' ' || resource_version as reading from event_sighting
union all
select uid || ' ' || body as reading from description
"""


def rows_of(batch: int) -> list[tuple[str, int]]:
    """Objects and versions of a batch."""
    return [(f"e{version % UIDS}", version) for version in range(batch * ROWS + 1, (batch + 1) * ROWS + 1)]


@dataclass(slots=True)
class Found:
    """
    What many kills came to, in facts.

    `in_flight` were committed without a word: their writer died before it could say so. `reopening` is
    the CPU time of each opening after a kill, seconds.
    """

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    torn: int = 0
    unjournaled: int = 0
    in_flight: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    reopening: list[float] = field(default_factory=list)

    def look(self, path: Path, acknowledged: int) -> int:
        """Open the store and count, given the last batch that was acknowledged; gives the next batch."""
        start = time.process_time()
        store = Store.open(path)
        self.reopening.append(time.process_time() - start)
        mark = store.known(CLUSTER).marks.get(ObjectKind.EVENT)
        committed = int(mark.resource_version) if mark is not None else 0
        (row,) = store.rows(TOTALS)
        store.close()
        rows, different, newest, described, differently, again = map(int, map(str, row.values()))
        told = (acknowledged + 1) * ROWS
        # Of each reading of an Event there is one of a namespace.
        self.lost += max(0, told - different) + max(0, told - differently)
        self.doubled += rows - different + described - differently + again
        # Facts and the mark of the source commit as one, and a batch whole or not at all.
        self.torn += abs(newest - committed) + abs(newest - different) + newest % ROWS
        self.torn += abs(newest - differently)
        self.in_flight += max(0, newest - told)
        return newest // ROWS

    def look_into_journal(self, path: Path) -> None:
        """Count what is in the store, and not in what its journal gives again."""
        again = Store.open(None)
        replay(journal_beside(path), CLUSTER, again)
        store = Store.open(path)
        kept, given = ({str(row["reading"]) for row in one.rows(READINGS)} for one in (store, again))
        self.unjournaled += len(kept - given)
        self.doubled += len(again.rows(READINGS)) - len(given)
        store.close()
        again.close()


def kill_many_times(path: Path, kills: int, chance: random.Random) -> Found:
    """Kill a writer so often, and look after each time."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.store.killed_writer"])
    found = Found()
    following = 0
    for _ in range(kills):
        moment = chance.choice(MOMENTS)
        ours, theirs = forks.Pipe()
        # What was acknowledged last comes again, as a watch repeats itself.
        first = max(0, following - REPLAYED)
        process = forks.Process(target=write_until_killed, args=(path, theirs))
        process.start()
        theirs.close()
        acknowledged = max(following - 1, _order_until_killed(process, ours, first, moment, chance))
        process.join()
        assert process.exitcode == -signal.SIGKILL
        process.close()
        ours.close()
        found.kills += 1
        found.moments[moment or "at random"] += 1
        found.acknowledged += (acknowledged + 1 - following) * ROWS
        following = found.look(path, acknowledged)
    found.look_into_journal(path)
    return found


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


def main() -> None:
    """Kill as often as the command line says, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kills", type=int, help="how often")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = kill_many_times(Path(folder) / "store.duckdb", given.kills, random.Random(given.seed))
    opening = sorted(found.reopening)
    lines = [("kills", f"{found.kills:,}")]
    lines += [(f"  {moment}", f"{times:,}") for moment, times in sorted(found.moments.items())]
    for name in ("acknowledged", "lost", "doubled", "torn", "unjournaled", "in_flight"):
        lines.append((f"facts {name.replace('_', ' ')}", f"{getattr(found, name):,}"))
    for name, place in (("p50", len(opening) // 2), ("p99", len(opening) * 99 // 100), ("max", -1)):
        lines.append((f"reopening, CPU seconds, {name}", f"{opening[place]:.3f}"))
    sys.stdout.writelines(f"{name:<32}{value:>12}\n" for name, value in lines)


if __name__ == "__main__":
    main()
