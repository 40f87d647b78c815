"""
Write the sample: two hours of a small cluster in the recording format, with its ground truth.

`python -m sample_data.generate [--seed N] [--end INSTANT] [FOLDER]`. The same seed and end give
the same recording.
"""

import argparse
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from domain.window import parse_instant
from sample_data import SMALL
from sample_data.agenda import Agenda
from sample_data.controllers import JobSide
from sample_data.demand import BATCH_LATE, INTERACTIVE_LATE, NEVER_FITS, VICTIM, demand
from sample_data.kubelets import Kubelets
from sample_data.lives import Life
from sample_data.machines import Machines
from sample_data.objects import Scribe
from sample_data.site import set_up
from sample_data.stamps import MS_PER_MINUTE, MS_PER_SECOND
from sample_data.tape import Line, Tape, write_gzip, write_recording

SEED = 7
END = "2026-11-02T10:00:00Z"
LENGTH_MS = 120 * MS_PER_MINUTE
_CORDONED = ("a100-04", 50, 58)
_MOST_TRIES = 200
_INTERACTIVE_WAIT_S = (535, 545)
_BATCH_WAIT_S = (4_190, 4_210)
_OTHER_INTERACTIVE_MOST_S = 55
_OTHER_BATCH_MOST_S = 50 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A sample that is not yet written: lists, watch lines in order of receipt, and the truth."""

    start_ms: int
    end_ms: int
    lists: dict[str, str]
    lines: list[Line]
    truth: dict[str, Any]

    def write(self, folder: Path, *, until_ms: int | None = None) -> None:
        """
        Write it as a recording folder.

        Args:
            folder: made if it is not there.
            until_ms: leave out what came in at or after this instant.
        """
        lines = [line for line in self.lines if until_ms is None or line.received_ms < until_ms]
        write_recording(folder, self.lists, lines)
        write_gzip(folder / "ground_truth.json.gz", json.dumps(self.truth, separators=(",", ":")) + "\n")


def generate(*, seed: int, end_ms: int) -> Recording:
    """
    Two hours that end at the instant, from a seed.

    A draw in which chance makes another story than the arranged ones (a second long interactive
    wait, say) is thrown away and the next one taken; which one it was is a function of the seed.
    """
    start_ms = end_ms - LENGTH_MS
    for attempt in range(_MOST_TRIES):
        rng = Random(f"{seed}/{attempt}")
        tape = Tape(start_ms)
        jobs = _play(tape, rng, start_ms=start_ms, end_ms=end_ms)
        if _as_arranged(jobs.lives, end_ms):
            truth = {
                "seed": seed,
                "start": start_ms / MS_PER_SECOND,
                "end": end_ms / MS_PER_SECOND,
                "workloads": [life.truth(end_ms) for life in jobs.lives],
            }
            lines = tape.lines(rng, end_ms)
            return Recording(start_ms=start_ms, end_ms=end_ms, lists=tape.lists(), lines=lines, truth=truth)
    message = f"seed {seed}: none of {_MOST_TRIES} draws tells the arranged stories alone"
    raise RuntimeError(message)


def _play(tape: Tape, rng: Random, *, start_ms: int, end_ms: int) -> JobSide:
    nodes = set_up(tape, rng)
    agenda = Agenda()
    scribe = Scribe(tape, rng)
    machines = Machines()
    kubelets = Kubelets(agenda, scribe, rng, machines)
    jobs = JobSide(agenda, scribe, rng, kubelets)
    kubelets.controllers = jobs
    for request in demand(rng):
        agenda.at(start_ms + request.submit_ms, partial(jobs.submit, request))
    name, closed, opened = _CORDONED

    def cordon(at_ms: int, *, closes: bool) -> None:
        nodes[name]["spec"] = {"unschedulable": True} if closes else {}
        (machines.cordoned.add if closes else machines.cordoned.discard)(name)
        scribe.node(nodes[name], at_ms)
        agenda.at(at_ms + 20, kubelets.schedule)

    agenda.at(start_ms + closed * MS_PER_MINUTE, partial(cordon, closes=True))
    agenda.at(start_ms + opened * MS_PER_MINUTE, partial(cordon, closes=False))
    agenda.run(end_ms)
    return jobs


def _as_arranged(lives: list[Life], end_ms: int) -> bool:
    """Whether the arranged workloads wait as long as they should and no other one too long."""
    wanted = {INTERACTIVE_LATE: _INTERACTIVE_WAIT_S, BATCH_LATE: _BATCH_WAIT_S}
    for life in lives:
        mark, waits = life.request.mark, life.waits_ms(end_ms)
        longest_s = max(waits, default=0) / MS_PER_SECOND
        if mark in wanted:
            low, high = wanted[mark]
            if not (low <= longest_s <= high and life.placed_ms):
                return False
        elif life.request.gate or mark in (NEVER_FITS, VICTIM):
            continue
        elif longest_s > _most_wait_s(life):
            return False
    preempted = [life for life in lives for _ in life.preemptions]
    return [life.request.mark for life in preempted] == [VICTIM]


def _most_wait_s(life: Life) -> int:
    interactive = life.request.priority_class == "interactive"
    return _OTHER_INTERACTIVE_MOST_S if interactive else _OTHER_BATCH_MOST_S


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m sample_data.generate", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--end", default=END, help="RFC 3339 instant at which the recording ends")
    parser.add_argument("folder", nargs="?", type=Path, default=SMALL)
    options = parser.parse_args()
    generate(seed=options.seed, end_ms=parse_instant(options.end)).write(options.folder)


if __name__ == "__main__":
    main()
