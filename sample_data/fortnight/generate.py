"""
Write the fortnight: a recording of 32 nodes, its GPU metrics, and its truth.

`python -m sample_data.fortnight.generate [--seed N] [--end INSTANT] [--little DAYS] [FOLDER]`.
The same seed and end give the same recording.
"""

import argparse
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from domain.window import parse_instant
from sample_data.agenda import Agenda
from sample_data.fortnight import END, EXPORTERS, FORTNIGHT, SAMPLES
from sample_data.fortnight.controllers import JobSide
from sample_data.fortnight.demand import MS_PER_DAY, Calendar, Demand
from sample_data.fortnight.exporters import write_exporters
from sample_data.fortnight.kubelets import Kubelets
from sample_data.fortnight.kueue import Quotas
from sample_data.fortnight.machines import Machines
from sample_data.fortnight.papers import Scribe
from sample_data.fortnight.samples import write_parquet
from sample_data.fortnight.site import Site, fortnight_site, little_site
from sample_data.fortnight.standing import set_up
from sample_data.fortnight.stories import Stories
from sample_data.fortnight.truth import truth_of
from sample_data.tape import STREAMS, Line, Tape, write_packed, write_recording

SEED = 24
DAYS = 14
# A real API server sends one about every minute; these are still well within the silence after which a
# source is stale, and half as many to read.
_BOOKMARK_EVERY_MS = (100_000, 120_000)
_FULL = fortnight_site().node_count() * DAYS
# Events have two views; one of them is enough.
_STREAMS = {name: stream for name, stream in STREAMS.items() if name != "events"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A sample that is not yet written: lists, watch lines in order of receipt, and the truth."""

    start_ms: int
    end_ms: int
    lists: dict[str, str]
    lines: list[Line]
    truth: dict[str, Any]

    def write(self, folder: Path) -> None:
        """
        Write it as a recording folder, with its truth and its GPU metrics beside.

        These are `ground_truth.json.xz`, `gpu_samples.parquet`, and in `dcgm/` the last hour as exporters
        answered it.
        """
        write_recording(folder, self.lists, self.lines, streams=_STREAMS, packing="xz")
        write_packed(folder / "ground_truth.json.xz", json.dumps(self.truth, separators=(",", ":")) + "\n")
        write_parquet(self.truth, folder / SAMPLES)
        write_exporters(self.truth, folder / EXPORTERS)


def generate(*, seed: int, end_ms: int, site: Site | None = None, days: int = DAYS) -> Recording:
    """
    The days that end at the instant, from a seed.

    Args:
        seed: of everything that is drawn.
        end_ms: where the recording ends.
        site: what stands there; by default the 32 nodes.
        days: how many.
    """
    site = site or fortnight_site()
    start_ms = end_ms - days * MS_PER_DAY
    rng = Random(seed)
    tape = Tape(start_ms, bookmark_every_ms=_BOOKMARK_EVERY_MS)
    scribe, agenda = Scribe(tape, rng), Agenda()
    objects = set_up(site, scribe, rng, start_ms)
    kubelets = Kubelets(agenda, scribe, rng, Machines.of(site, rng))
    teams = {space: team for space, (team, _) in site.spaces.items()}
    jobs = JobSide(agenda, scribe, rng, kubelets, site, Quotas(site), teams)
    kubelets.controllers = jobs
    stories = Stories(
        agenda=agenda,
        scribe=scribe,
        rng=rng,
        site=site,
        objects=objects,
        kubelets=kubelets,
        jobs=jobs,
        start_ms=start_ms,
        end_ms=end_ms,
    )
    stories.plan()
    demand = Demand(
        rng=rng,
        calendar=Calendar(rng=rng, start_ms=start_ms, end_ms=end_ms),
        share=site.node_count() * days / _FULL,
        nodes_of_h100=len(site.flavors["h100"].nodes),
        users=site.users,
    )
    for request in [*demand.all(), *stories.requests(demand)]:
        agenda.at(request.submit_ms, partial(jobs.submit, request))
    agenda.run(end_ms)
    truth = truth_of(jobs.lives, stories, site, seed=seed, start_ms=start_ms, end_ms=end_ms)
    lines = tape.lines(rng, end_ms)
    return Recording(start_ms=start_ms, end_ms=end_ms, lists=tape.lists(), lines=lines, truth=truth)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m sample_data.fortnight.generate", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--end", default=END, help="RFC 3339 instant at which the recording ends")
    parser.add_argument("--little", type=int, metavar="DAYS", help="eight nodes and so many days")
    parser.add_argument("folder", nargs="?", type=Path, default=FORTNIGHT)
    options = parser.parse_args()
    end_ms = parse_instant(options.end)
    if options.little:
        recording = generate(seed=options.seed, end_ms=end_ms, site=little_site(), days=options.little)
    else:
        recording = generate(seed=options.seed, end_ms=end_ms)
    recording.write(options.folder)


if __name__ == "__main__":
    main()
