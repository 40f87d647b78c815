"""Imports of tables of jobs: files in, facts and lives out, and a summary that counts every line."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from collector.imports.keeping import Keeper
from collector.imports.mapping import TableMapping, mapping_of
from collector.imports.records import NO_END
from collector.imports.row import Aside, JobRow, Part, Read, unless_of_the_future
from collector.imports.sacct import BOM, read_sacct
from collector.imports.sacct_json import ENDS_WITHIN, HAS_ERRORS, MORE_FOLLOWS, read_sacct_json
from collector.imports.swf import Log, read_swf
from collector.imports.table import read_csv, read_parquet
from domain.errors import RecordingError
from service.imported_file import (
    CUT_OFF,
    OTHER_CLUSTER,
    Naming,
    Progress,
    Source,
    counted_before,
    opened,
    pieces,
    source_of,
    source_of_parquet,
    unless_watched,
)
from service.reconciliation import Ledger, Reconciliation
from service.settings_file import yaml_of
from store.embedded import Store

# Rows between two commits: with fewer the commits cost, with more the memory.
PART_ROWS: Final = 10_000
# Rows between two refreshes of the lives; one takes some 12 MB for each thousand jobs.
REFRESH_ROWS: Final = 20_000
# What is set aside so shows that something of a file is missing.
_CUT: Final = frozenset({ENDS_WITHIN, HAS_ERRORS, MORE_FOLLOWS, NO_END})


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
    of several jobs. `may_be_later` counts stays that have a stamp of an hour that the clock shows twice.
    `cut` says where the file ends before its end, and is empty where it is whole.
    """

    name: str
    lines: int = 0
    job_lines: int = 0
    part_lines: int = 0
    jobs: int = 0
    may_be_later: int = 0
    aside: Counter[str] = field(default_factory=Counter)
    cut: str = ""
    clusters: dict[str, ClusterSummary] = field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        """Whether the file ends before its end: then its totals are not those of all its jobs."""
        return bool(self.cut)

    @property
    def closes(self) -> bool:
        """Whether the books agree with the file's own totals."""
        closings = [one.closing for one in self.clusters.values() if one.closing is not None]
        return all(closing.closes for closing in closings)


def sacct_source(path: Path, *, zone: ZoneInfo, fields: str | None) -> Source[Read]:
    """A text or a JSON document of sacct; which of them it is its first byte tells."""
    peek = opened(path)
    first = next((piece.removeprefix(BOM).lstrip() for piece in peek.pieces() if piece.strip()), b"")
    if first.startswith(b"{"):
        file = opened(path)
        return source_of(path, file, read_sacct_json(_without_mark(file.pieces()), name=path.name))
    file = opened(path, ends=True)
    return source_of(path, file, read_sacct(file, name=path.name, zone=zone, fields=fields))


def _without_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a document, without the mark that some shells write before it."""
    yield next(pieces, b"").removeprefix(BOM)
    yield from pieces


def swf_source(path: Path, log: Log) -> Source[Read]:
    """A log in the Standard Workload Format."""
    file = opened(path, ends=True)
    return source_of(path, file, read_swf(file, log, name=path.name))


def table_source(path: Path, mapping: TableMapping) -> Source[Read]:
    """A CSV or Parquet table."""
    file = opened(path)
    if path.suffix == ".parquet":
        return source_of_parquet(path, read_parquet(path, mapping))
    reads = read_csv(file, mapping, name=path.name, is_open=lambda: file.is_open)
    return source_of(path, file, reads)


def import_jobs(  # noqa: PLR0913 (what a command's options say)
    source: Source[Read],
    store: Store,
    *,
    cluster: str | None,
    now_ms: int,
    refresh: Callable[[str], int],
    progress: Progress | None = None,
    watched: Collection[str] = (),
) -> Summary:
    """
    Take in a file of jobs; doing it again changes nothing.

    Args:
        source: the file.
        store: keeps the facts.
        cluster: the name under which they are kept; None takes the one that each row names, else the
            file's own name.
        now_ms: by the machine's clock; a row that tells of later is set aside.
        refresh: cuts the lives of a cluster from its facts.
        progress: told the lines read, and the bytes of the file.
        watched: the clusters that are watched; what they tell is not mixed with jobs of a file.

    Raises:
        UsageError: a row is of a cluster that is watched.
    """
    summary = Summary(name=source.name)
    keepers: dict[str, Keeper] = {}
    kind = source.path.name
    counted = counted_before(store, kind)
    named = Naming(cluster, source.path)
    since_refresh = 0
    for reads in pieces(source.reads, PART_ROWS):
        rows: dict[str, list[JobRow]] = defaultdict(list)
        aside: list[Aside] = []
        for read in reads:
            _sort(unless_of_the_future(read, now_ms), named, summary, rows, aside)
        unless_watched(rows, watched)
        home = named.cluster
        for name in [home, *sorted(rows.keys() - {home})]:
            keeper = keepers.get(name)
            if keeper is None:
                keeper = keepers[name] = Keeper(
                    name, store, source=kind, now_ms=now_ms, known_aside=counted[name]
                )
            _keep(keeper, rows[name], aside if name == home else [], summary)
        since_refresh += len(reads)
        if since_refresh >= REFRESH_ROWS:
            for name in keepers:
                refresh(name)
            since_refresh = 0
        if progress is not None:
            progress(summary.lines, source.position())
    home = named.cluster
    last = Keeper(home, store, source=kind, now_ms=now_ms, known_aside=counted[home])
    _broken(source, last, summary)
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


def _sort(
    read: Read,
    named: Naming,
    summary: Summary,
    rows: dict[str, list[JobRow]],
    aside: list[Aside],
) -> None:
    match read:
        case JobRow():
            summary.lines += read.lines
            cluster = named.of(read.cluster)
            if cluster is None:
                aside.append(
                    Aside(line=read.line, because=OTHER_CLUSTER, sample=read.cluster, lines=read.lines)
                )
                summary.aside[OTHER_CLUSTER] += read.lines
            else:
                summary.job_lines += read.lines
                summary.jobs += 1
                summary.may_be_later += read.may_be_later
                rows[cluster].append(read)
        case Aside():
            if read.because in _CUT:
                summary.cut = f"{summary.name}, line {read.line:,}: {read.because}"
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


def _broken(source: Source[Read], keeper: Keeper, summary: Summary) -> None:
    """What comes after the damage nobody can count: it is one line."""
    because = source.broken()
    if not because:
        return
    if not summary.lines:
        message = f"{source.path}: {because}"
        raise RecordingError(message)
    _keep(keeper, [], [Aside(line=summary.lines + 1, because=CUT_OFF, sample=because)], summary)
    summary.lines += 1
    summary.aside[CUT_OFF] += 1
    summary.cut = because
