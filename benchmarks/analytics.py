"""
What questions about ten million jobs cost, and peers: `python -m benchmarks.analytics [--quick] [PART]...`.

Parts are `questions`, `month`, `prometheus`, `refresh` and `backfill`, by default all. Answers are compared
before a figure is told: where they differ the run fails. Each run is a process of its own, product and peers
in turn; figures are medians of CPU seconds of all threads, of `month` the least. Exits with 1 where a goal is
missed.

`--keep FOLDER` leaves the seeded data there, and takes them from there the next time.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from benchmarks.children import Run, run
from benchmarks.questions import Answer, Data
from benchmarks.seeded_jobs import Cluster, days_of_jobs
from benchmarks.seeded_store import ASKED, written
from store.embedded import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is asked of: clusters by part, days with samples, and how often."""

    questions: Cluster
    month: Cluster
    prometheus: Cluster
    refresh: Cluster
    backfill: Cluster
    sampled_days: int = 2
    longer: int = 10
    rounds: int = 5


FULL: Final = Size(
    questions=Cluster(jobs=10_000_000, days=365, nodes=1000),
    month=Cluster(jobs=10_000_000, days=31, nodes=1000),
    prometheus=Cluster(jobs=100_000, days=28, nodes=150),
    refresh=Cluster(jobs=300_000, days=17, nodes=1000),
    backfill=Cluster(jobs=10_000, days=30, nodes=8),
)
QUICK: Final = Size(
    questions=Cluster(jobs=300_000, days=365, nodes=100),
    month=Cluster(jobs=100_000, days=31, nodes=100),
    prometheus=Cluster(jobs=20_000, days=7, nodes=60),
    refresh=Cluster(jobs=15_000, days=17, nodes=50),
    backfill=Cluster(jobs=500, days=3, nodes=3),
    sampled_days=1,
    longer=4,
    rounds=3,
)
# Least ratio of a peer's CPU seconds to the product's.
GOALS: Final = {"pandas": 4.0, "polars": 1.0}
QUESTIONS: Final = ("waits", "depth", "money")
_REFRESH_SECONDS: Final = 1.0
_SCANNED_MORE: Final = 0.1
_FACTS_SECONDS: Final = 20.0
_KEPT_SECONDS: Final = 0.2
_BACKFILL_MB: Final = 2048.0


class Told(msgspec.Struct, kw_only=True, frozen=True):
    """A figure: ours, the peer's and their ratio where there is one, and whether the goal is reached."""

    name: str
    unit: str
    ours: float
    peer: float | None = None
    ratio: float | None = None
    goal: str = ""
    holds: bool = True


def same(ours: Answer, theirs: Answer) -> None:
    """
    Refuse answers that differ, money by more than the cent that apportioning moves between neighbours.

    Raises:
        AssertionError: names the first label under which they differ.
    """
    assert ours.keys() == theirs.keys(), sorted(ours.keys() ^ theirs.keys())[:3]
    for label, value in ours.items():
        other = theirs[label]
        if isinstance(value, list) and isinstance(value[1], str):
            assert value[0] == other[0], (label, value, other)
            assert abs(Decimal(value[1]) - Decimal(other[1])) <= Decimal("0.01"), (label, value, other)
        else:
            assert value == other, (label, value, other)


def seeded(cluster: Cluster, folder: Path) -> Data:
    """The jobs of a cluster as Parquet and as a store; those that are in the folder already are taken."""
    name = f"{cluster.jobs}-{cluster.days}-{cluster.nodes}"
    data = Data(parquet=folder / f"{name}.parquet", store=folder / f"{name}.duckdb", cluster=cluster)
    if data.parquet.exists() and data.store.exists():
        return data
    store = Store.open(data.store)
    try:
        first = next(days_of_jobs(cluster)).to_arrow()
        with pq.ParquetWriter(data.parquet, first.schema, compression="zstd") as file:

            def days() -> Any:
                for day in days_of_jobs(cluster):
                    file.write_table(day.to_arrow())
                    yield day

            written(store, days(), cluster, only=ASKED)
    finally:
        store.close()
    return data


def question_figures(size: Size, folder: Path) -> list[Told]:
    """Waits, depth and money, by the product, pandas and polars."""
    data = seeded(size.questions, folder)
    found = []
    for question in QUESTIONS:
        runs: dict[str, list[Run]] = {who: [] for who in ("product", *GOALS)}
        for _ in range(size.rounds):
            for who, of in runs.items():
                of.append(run(f"benchmarks.by_{who}:answer", data.told() | {"question": question}))
        ours = runs["product"]
        for peer, goal in GOALS.items():
            same(ours[0].answer, runs[peer][0].answer)
            pairs = zip(ours, runs[peer], strict=True)
            ratio = median(theirs.cpu_seconds / mine.cpu_seconds for mine, theirs in pairs)
            found += [
                Told(name=f"{question}, {peer}", unit="cpu_s", ours=_cpu(ours), peer=_cpu(runs[peer]),
                     ratio=ratio, goal=f"ratio >= {goal:g}", holds=ratio >= goal),
                Told(name=f"{question}, {peer}, memory", unit="MB", ours=_memory(ours),
                     peer=_memory(runs[peer])),
            ]  # fmt: skip
    return found


def _cpu(runs: Sequence[Run]) -> float:
    return median(one.cpu_seconds for one in runs)


def _memory(runs: Sequence[Run]) -> float:
    return max(one.peak_mb for one in runs)


def _against(name: str, ours: float, theirs: float, goal: float) -> Told:
    """A peer's CPU seconds over ours."""
    ratio = theirs / ours
    return Told(
        name=name, unit="cpu_s", ours=ours, peer=theirs, ratio=ratio,
        goal=f"ratio >= {goal:g}", holds=ratio >= goal,
    )  # fmt: skip


def month_figures(size: Size, folder: Path) -> list[Told]:
    """A month from facts, from days that were added up before, and closed; peers sum what was held."""
    data = seeded(size.month, folder)
    ours: list[Run] = []
    peers: dict[str, list[Run]] = {who: [] for who in GOALS}
    for _ in range(size.rounds):
        ours.append(run("benchmarks.month:answer", data.told()))
        for who, of in peers.items():
            of.append(run(f"benchmarks.by_{who}:answer", data.told() | {"question": "money"}))
    for runs in peers.values():
        same(ours[0].answer["answer"], runs[0].answer)
    least = {name: min(one.answer[name] for one in ours) for name in ("facts", "keeping", "kept", "closing")}
    peer_least = {who: min(one.cpu_seconds for one in runs) for who, runs in peers.items()}
    ways = {"from facts": ("facts", _FACTS_SECONDS), "from kept days, equal": ("kept", _KEPT_SECONDS)}
    return [
        *(
            _against(f"month {way}, {who}", least[name], peer_least[who], goal)
            for way, (name, _) in ways.items()
            for who, goal in GOALS.items()
        ),
        *(
            Told(name=f"month {way}", unit="cpu_s", ours=least[name], goal=f"< {most:g}",
                 holds=least[name] < most)
            for way, (name, most) in ways.items()
        ),
        Told(name="all its days added up, one by one", unit="cpu_s", ours=least["keeping"]),
        Told(name=f"month closed in {ours[0].answer['lines']:,} lines, equal", unit="cpu_s",
             ours=least["closing"]),
        Told(name="month, pandas, memory", unit="MB", ours=_memory(ours), peer=_memory(peers["pandas"])),
        Told(name="month, polars, memory", unit="MB", ours=_memory(ours), peer=_memory(peers["polars"])),
    ]  # fmt: skip


def prometheus_figures(size: Size, folder: Path) -> list[Told]:
    """p99 of waits and depth: how far off a Prometheus is that saw all scrapes, and what it takes."""
    from benchmarks import by_prometheus

    if missing := by_prometheus.missing():
        print(f"prometheus: skipped, {' and '.join(missing)} not installed", file=sys.stderr)
        return []
    data = seeded(size.prometheus, folder)
    # Questions come between scrapes.
    instants = [at_ms - 29_000 for at_ms in data.instants_ms]
    theirs = by_prometheus.answer(data.told() | {"instants_ms": instants})
    ours = run("benchmarks.by_product:by_class", data.told() | {"instants_ms": instants})
    wait_error = max(abs(theirs["waits"][name] / value - 1) for name, value in ours.answer["waits"].items())
    depth = ours.answer["depth"]
    off = sum(abs(theirs["depth"].get(at, 0) - value) for at, value in depth.items())
    return [
        Told(name="p99 of waits, Prometheus", unit="ms CPU a question", ours=ours.answer["waits_cpu_ms"],
             peer=theirs["waits_cpu_ms"]),
        Told(name="p99 of waits, largest error", unit="of the exact one", ours=0.0, peer=wait_error),
        Told(name="depth, Prometheus", unit="ms CPU a question", ours=ours.answer["depth_cpu_ms"],
             peer=theirs["depth_cpu_ms"]),
        Told(name="depth, error in all", unit="of the exact one", ours=0.0, peer=off / sum(depth.values())),
        Told(name="memory, Prometheus", unit="MB", ours=ours.peak_mb, peer=theirs["server_mb"]),
        Told(name="back-fill by promtool", unit="cpu_s", ours=0.0, peer=theirs["backfill_cpu_seconds"]),
    ]  # fmt: skip


def refresh_figures(size: Size, folder: Path) -> list[Told]:
    """All metrics one minute later; and the same with a longer history behind it."""
    from benchmarks.refreshing import filled

    found: dict[int, list[Run]] = {}
    for longer in (1, size.longer):
        cluster = Cluster(
            jobs=size.refresh.jobs * longer, days=size.refresh.days * longer, nodes=size.refresh.nodes
        )
        path = folder / f"refresh-{cluster.jobs}.duckdb"
        path.unlink(missing_ok=True)
        asked = {"cluster": asdict(cluster), "store": str(path), "news": str(filled(path, cluster))}
        # The minute's news is written once; then it is known, and the same is measured again.
        found[longer] = [
            run("benchmarks.refreshing:answer", asked) for _ in range(size.rounds if longer == 1 else 1)
        ]
        path.unlink()
    spent = median(sum(one.answer["spent"].values()) for one in found[1])
    rows, more = found[1][0].answer["rows"], found[size.longer][0].answer["rows"]
    memory = _memory(found[1])
    return [
        Told(name="refresh of all metrics", unit="cpu_s", ours=spent, goal=f"< {_REFRESH_SECONDS:g}",
             holds=spent < _REFRESH_SECONDS),
        Told(name="refresh, series", unit="series", ours=found[1][0].answer["series"]),
        Told(name="refresh, memory", unit="MB", ours=memory),
        Told(name=f"rows read with {size.longer} times the history", unit="rows", ours=more, peer=rows,
             ratio=more / rows, goal=f"< {1 + _SCANNED_MORE:g} times", holds=more / rows < 1 + _SCANNED_MORE),
    ]  # fmt: skip


def backfill_figures(size: Size, folder: Path) -> list[Told]:
    """A month imported at once, and the same day by day."""
    from benchmarks import backfill

    cluster = size.backfill
    once, pieces = backfill.files(folder, cluster, sampled_days=size.sampled_days)
    runs = {}
    for name, files in {"once": once, "pieces": pieces}.items():
        path = folder / f"backfill-{name}.duckdb"
        asked = {"cluster": asdict(cluster), "store": str(path), "files": [str(file) for file in files]}
        runs[name] = run("benchmarks.backfill:answer", asked)
        path.unlink()
    same(runs["once"].answer["holds"], runs["pieces"].answer["holds"])
    once_told, peak = runs["once"].answer, max(one.peak_mb for one in runs.values())
    jobs, samples, spent = once_told["jobs"], once_told["samples"], once_told["spent"]
    return [
        Told(name=f"back-fill of {jobs:,} jobs and {samples:,} samples", unit="cpu_s",
             ours=runs["once"].cpu_seconds),
        Told(name="the same day by day, equal books", unit="cpu_s", ours=runs["pieces"].cpu_seconds),
        Told(name="a job, read and cut", unit="ms CPU", ours=1000 * spent["jobs"] / jobs),
        Told(name="a thousand samples, kept", unit="ms CPU", ours=1e6 * spent["samples"] / max(samples, 1)),
        Told(name="a job, in all other books", unit="ms CPU", ours=1000 * spent["books"] / jobs),
        Told(name="back-fill, memory", unit="MB", ours=peak, goal=f"< {_BACKFILL_MB:g}",
             holds=peak < _BACKFILL_MB),
    ]  # fmt: skip


PARTS: Final[dict[str, Callable[[Size, Path], list[Told]]]] = {
    "questions": question_figures,
    "month": month_figures,
    "prometheus": prometheus_figures,
    "refresh": refresh_figures,
    "backfill": backfill_figures,
}


def tell(figures: Sequence[Told]) -> bool:
    """Print a table, then a line of JSON for each figure; gives whether all hold."""
    rows = [("what", "unit", "product", "peer", "ratio", "goal", "")] + [
        (
            one.name,
            one.unit,
            f"{one.ours:,.2f}",
            "-" if one.peer is None else f"{one.peer:,.2f}",
            "-" if one.ratio is None else f"{one.ratio:.2f}",
            one.goal or "-",
            "" if one.holds else "missed",
        )
        for one in figures
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for one in figures:
        print(msgspec.json.encode(one).decode())
    return all(one.holds for one in figures)


def main(arguments: list[str]) -> int:
    """Run what the arguments name, by default all; gives the exit status."""
    kept = Path(arguments[arguments.index("--keep") + 1]) if "--keep" in arguments else None
    size = QUICK if "--quick" in arguments else FULL
    chosen = [part for name, part in PARTS.items() if name in arguments] or list(PARTS.values())
    with TemporaryDirectory(prefix="benchmark") if kept is None else nullcontext(kept) as folder:
        return 0 if tell([figure for part in chosen for figure in part(size, Path(folder))]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
