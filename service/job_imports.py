"""Imports of tables of jobs: files in, facts and lives out, and a summary that counts every line."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from collector.imports.keeping import Keeper
from collector.imports.mapping import TableMapping, mapping_of
from collector.imports.row import Aside, JobRow, Part, Read
from collector.imports.sacct import read_sacct
from collector.imports.sacct_json import read_sacct_json
from collector.imports.swf import Log, read_swf
from collector.imports.table import read_csv, read_parquet
from collector.unpacking import CarefulFile
from domain.errors import RecordingError
from service.reconciliation import Ledger, Reconciliation
from service.settings_file import yaml_of
from store.embedded import Store

# Rows between two commits: with fewer the commits cost, with more the memory.
PART_ROWS: Final = 10_000
# Rows between two refreshes of the lives; one takes some 12 MB for each thousand jobs.
REFRESH_ROWS: Final = 20_000
OTHER_CLUSTER: Final = "of another cluster than the file's first row: leave --cluster out to take in each"
CUT_OFF: Final = "the file is cut off or broken there"

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Source:
    """
    A file as a stream of readings.

    `position` tells how many bytes of `size` were read (0: nobody knows); `broken` why the rest cannot be.
    """

    name: str
    path: Path
    reads: Iterator[Read]
    size: int
    position: Callable[[], int]
    broken: Callable[[], str]


@dataclass(slots=True)
class ClusterSummary:
    """What came of the rows of one cluster."""

    new: int = 0
    updated: int = 0
    known: int = 0
    refused: int = 0
    facts: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    closing: Reconciliation | None = None


@dataclass(slots=True)
class Summary:
    """
    What came of a file: each line is one of a job, a part of one, or set aside.

    `lines` = `job_lines` + `part_lines` + the sum of `aside`. `jobs` exceeds `job_lines` where a line tells
    of several jobs.
    """

    name: str
    lines: int = 0
    job_lines: int = 0
    part_lines: int = 0
    jobs: int = 0
    aside: Counter[str] = field(default_factory=Counter)
    clusters: dict[str, ClusterSummary] = field(default_factory=dict)
    cut: int = 0

    @property
    def closes(self) -> bool:
        """Whether the books agree with the file's own totals."""
        closings = [one.closing for one in self.clusters.values() if one.closing is not None]
        return all(closing.closes for closing in closings)


def sacct_source(path: Path, *, zone: ZoneInfo, fields: str | None) -> Source:
    """A text or a JSON document of sacct; which of them it is its first byte tells."""
    file = _opened(path)
    peek = CarefulFile(path)
    first = next((line.lstrip() for line in peek if line.strip()), b"")
    if first.startswith(b"{"):
        reads = read_sacct_json(file.whole(), name=path.name)
    else:
        reads = read_sacct(file, name=path.name, zone=zone, fields=fields)
    return _source(path, file, reads)


def swf_source(path: Path, log: Log) -> Source:
    """A log in the Standard Workload Format."""
    file = _opened(path)
    return _source(path, file, read_swf(file, log, name=path.name))


def table_source(path: Path, mapping: TableMapping) -> Source:
    """A CSV or Parquet table."""
    file = _opened(path)
    if path.suffix == ".parquet":
        # How far a Parquet file is read nobody tells.
        return Source(path.name, path, read_parquet(path, mapping), 0, lambda: 0, lambda: "")
    return _source(path, file, read_csv(file, mapping, name=path.name))


def import_jobs(
    source: Source,
    store: Store,
    *,
    cluster: str | None,
    refresh: Callable[[str], int],
    progress: Progress | None = None,
) -> Summary:
    """
    Take in a file of jobs; doing it again changes nothing.

    Args:
        source: the file.
        store: keeps the facts.
        cluster: the name under which they are kept; None takes the one that each row names, else the
            file's own name.
        refresh: cuts the lives of a cluster from its facts.
        progress: told the lines read, and the bytes of the file.
    """
    summary = Summary(name=source.name)
    keepers: dict[str, Keeper] = {}
    kind = source.path.name
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in store.set_aside_counts():
        if row["source"] == kind:
            counted[str(row["cluster"])][str(row["because"])] += int(str(row["count"]))
    named = _Naming(cluster, source.path)
    since_refresh = 0
    for reads in _pieces(source.reads):
        rows: dict[str, list[JobRow]] = defaultdict(list)
        aside: list[Aside] = []
        for read in reads:
            _sort(read, named, summary, rows, aside)
        home = named.cluster
        for name in [home, *sorted(rows.keys() - {home})]:
            keeper = keepers.get(name)
            if keeper is None:
                keeper = keepers[name] = Keeper(name, store, source=kind, known_aside=counted[name])
            _keep(keeper, rows[name], aside if name == home else [], summary)
        since_refresh += len(reads)
        if since_refresh >= REFRESH_ROWS:
            for name in keepers:
                refresh(name)
            since_refresh = 0
        if progress is not None:
            progress(summary.lines, source.position())
    _broken(source, named.cluster, store, summary, counted)
    for name in keepers:
        refresh(name)
        one = summary.clusters[name]
        one.closing = one.ledger.closing(store, name)
    return summary


def mapping_file(path: Path) -> TableMapping:
    """
    The mapping that a YAML file holds.

    Raises:
        SettingsError: it cannot be read, or makes no sense.
    """
    return mapping_of(yaml_of(path), name=str(path))


class _Naming:
    """Under which name rows are kept."""

    def __init__(self, cluster: str | None, path: Path) -> None:
        self._given = cluster
        self._first: str | None = None
        self._of_file = path.name.partition(".")[0]

    @property
    def cluster(self) -> str:
        """The cluster of what belongs to no row."""
        return self._given or self._first or self._of_file

    def of(self, row: JobRow) -> str | None:
        """The cluster of a row; None for one that the given name does not mean."""
        told = row.cluster or self._of_file
        if self._first is None:
            self._first = told
        if self._given is None:
            return told
        return self._given if told == self._first else None


def _sort(
    read: Read,
    named: _Naming,
    summary: Summary,
    rows: dict[str, list[JobRow]],
    aside: list[Aside],
) -> None:
    match read:
        case JobRow():
            summary.lines += read.lines
            cluster = named.of(read)
            if cluster is None:
                aside.append(
                    Aside(line=read.line, because=OTHER_CLUSTER, sample=read.cluster, lines=read.lines)
                )
                summary.aside[OTHER_CLUSTER] += read.lines
            else:
                summary.job_lines += read.lines
                summary.jobs += 1
                rows[cluster].append(read)
        case Aside():
            summary.lines += read.lines
            summary.aside[read.because] += read.lines
            aside.append(read)
        case Part():
            summary.lines += 1
            summary.part_lines += 1


def _keep(keeper: Keeper, rows: list[JobRow], aside: list[Aside], summary: Summary) -> None:
    kept = keeper.keep(rows, aside)
    one = summary.clusters.setdefault(keeper.cluster, ClusterSummary())
    one.new += kept.new
    one.updated += kept.updated
    one.known += kept.known
    one.facts += kept.facts
    for row in kept.refused:
        summary.job_lines -= row.lines
        summary.jobs -= 1
        one.refused += 1
    for because, count in (kept.aside - Counter(_causes(aside))).items():
        summary.aside[because] += count
    one.ledger.add(kept.taken)


def _causes(aside: Iterable[Aside]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for one in aside:
        counted[one.because] += one.lines
    return counted


def _broken(
    source: Source, cluster: str, store: Store, summary: Summary, counted: dict[str, Counter[str]]
) -> None:
    """What comes after the damage nobody can count: it is one line."""
    because = source.broken()
    if not because:
        return
    if not summary.lines:
        message = f"{source.path}: {because}"
        raise RecordingError(message)
    keeper = Keeper(cluster, store, source=source.path.name, known_aside=counted[cluster])
    _keep(keeper, [], [Aside(line=summary.lines + 1, because=CUT_OFF, sample=because)], summary)
    summary.lines += 1
    summary.aside[CUT_OFF] += 1


def _pieces(reads: Iterable[Read]) -> Iterator[list[Read]]:
    piece: list[Read] = []
    for read in reads:
        piece.append(read)
        if len(piece) >= PART_ROWS:
            yield piece
            piece = []
    yield piece


def _opened(path: Path) -> CarefulFile:
    if not path.is_file():
        message = f"{path}: there is no such file"
        raise RecordingError(message)
    return CarefulFile(path)


def _source(path: Path, file: CarefulFile, reads: Iterator[Read]) -> Source:
    return Source(path.name, path, reads, path.stat().st_size, lambda: file.position, lambda: file.because)
