"""Imports of tables of counts in queues: a file in, stretches out, and a summary that counts every row."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from collector.imports.asides import Asides
from collector.imports.records import NO_END
from collector.imports.row import OF_THE_FUTURE, Aside
from collector.imports.state_table import (
    StateMapping,
    StateRead,
    StateRow,
    read_state_csv,
    read_state_parquet,
    state_mapping_of,
)
from collector.imports.states import taken
from domain.errors import RecordingError
from domain.facts import Batch
from domain.quantity import MICRO_PER_GPU
from domain.queue_state import Counts
from domain.window import CLOCK_SKEW_MS, MS_PER_HOUR, format_instant
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
)
from service.settings_file import yaml_of
from store.embedded import Store

# Rows between two commits.
PART_ROWS: Final = 20_000
_ROWS: Final = pl.Schema({"queue": pl.String, "at_ms": pl.Int64} | dict.fromkeys(Counts._fields, pl.Int64))
_BOOKS: Final = """
-- One row per stretch of a queue: what was counted, as the books have it.
select queue, start_ms, end_ms, running_workloads, waiting_workloads, held_micro_gpus, waiting_micro_gpus,
    idle_micro_gpus, total_micro_gpus
from queue_state
where cluster = $cluster and start_ms <= $last_ms and end_ms > $first_ms
order by start_ms
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """A queue's rows in the file and in the books, with their sums; None: that is not counted."""

    queue: str
    file_rows: int
    books_rows: int
    file_waiting_hours: float | None
    books_waiting_hours: float | None
    file_held_hours: float | None
    books_held_hours: float | None
    total_hours: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateClosing:
    """The file's totals against those of the books; `differing` rows have other counts there, or none."""

    lines: tuple[QueueLine, ...]
    differing: int

    @property
    def closes(self) -> bool:
        """Whether the books tell every row that was taken in."""
        return self.differing == 0


@dataclass(slots=True)
class StatesOfCluster:
    """What came of the rows of one cluster; `first_ms` and `last_ms` are those of the rows taken."""

    new: int = 0
    known: int = 0
    stretches: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    pieces: list[pl.DataFrame] = field(default_factory=list)
    closing: StateClosing | None = None


@dataclass(slots=True)
class StateSummary:
    """
    What came of a file: `lines` = new + known rows of its clusters + the sum of `aside`.

    `cut` says where it ends before its end, and is empty where it is whole.
    """

    name: str
    lines: int = 0
    aside: Counter[str] = field(default_factory=Counter)
    cut: str = ""
    clusters: dict[str, StatesOfCluster] = field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        """Whether the file ends before its end: then its totals are not those of all its rows."""
        return bool(self.cut)

    @property
    def closes(self) -> bool:
        """Whether the books agree with the file's own totals."""
        return all(one.closing is None or one.closing.closes for one in self.clusters.values())


def state_mapping_file(path: Path) -> StateMapping:
    """
    The mapping that a YAML file holds.

    Raises:
        SettingsError: it cannot be read, or makes no sense.
    """
    return state_mapping_of(yaml_of(path), name=str(path))


def state_source(path: Path, mapping: StateMapping) -> Source[StateRead]:
    """A CSV or Parquet table of counts."""
    file = opened(path)
    if path.suffix == ".parquet":
        return source_of_parquet(path, read_state_parquet(path, mapping))
    reads = read_state_csv(file, mapping, name=path.name, is_open=lambda: file.is_open)
    return source_of(path, file, reads)


def import_states(
    source: Source[StateRead],
    store: Store,
    mapping: StateMapping,
    *,
    cluster: str | None,
    now_ms: int,
    progress: Progress | None = None,
) -> StateSummary:
    """
    Take in a file of counts; doing it again changes nothing.

    Args:
        source: the file.
        store: keeps the counts.
        mapping: how the file is read.
        cluster: the name under which they are kept; None takes the one that each row names, else the
            file's own name.
        now_ms: by the machine's clock; a row that tells of later is set aside.
        progress: told the rows read, and the bytes of the file.
    """
    summary = StateSummary(name=source.name)
    named = Naming(cluster, source.path)
    before = counted_before(store, source.path.name)
    asides: dict[str, Asides] = {}

    def note(name: str, aside: list[Aside], observed_ms: int) -> None:
        counts = asides.setdefault(name, Asides(source.path.name, before[name]))
        counted, found = counts.note(aside, observed_ms=observed_ms)
        summary.aside += counted
        store.append(Batch(cluster=name, set_aside=found))

    for reads in pieces(source.reads, PART_ROWS):
        rows: dict[str, list[StateRow]] = defaultdict(list)
        aside: list[Aside] = []
        for read in reads:
            name = None if isinstance(read, Aside) else named.of(read.cluster)
            if isinstance(read, Aside):
                aside.append(read)
            elif name is None:
                aside.append(Aside(line=read.line, because=OTHER_CLUSTER, sample=read.cluster))
            elif read.at_ms > now_ms + CLOCK_SKEW_MS:
                sample = f"{read.queue} at {format_instant(read.at_ms)}"
                aside.append(Aside(line=read.line, because=OF_THE_FUTURE, sample=sample))
            else:
                rows[name].append(read)
        summary.lines += len(reads)
        summary.cut = summary.cut or _cut_in(aside, summary.name)
        home = named.cluster
        for name, members in {home: [], **rows}.items():
            refused = _keep(members, store, name, mapping.step_ms, summary) if members else []
            newest_ms = max((row.at_ms for row in members), default=now_ms)
            note(name, [*refused, *(aside if name == home else [])], newest_ms)
        if progress is not None:
            progress(summary.lines, source.position())
    if because := source.broken():
        if not summary.lines:
            message = f"{source.path}: {because}"
            raise RecordingError(message)
        summary.lines += 1
        note(named.cluster, [Aside(line=summary.lines, because=CUT_OFF, sample=because)], now_ms)
        summary.cut = because
    for name, one in summary.clusters.items():
        one.closing = _closing(store, name, one, mapping.step_ms)
    return summary


def _cut_in(aside: list[Aside], name: str) -> str:
    """Where a file was cut within a line, by what was set aside of it; empty where it was not."""
    return next((f"{name}, line {one.line:,}: {NO_END}" for one in aside if one.because == NO_END), "")


def _keep(
    rows: list[StateRow], store: Store, cluster: str, step_ms: int, summary: StateSummary
) -> list[Aside]:
    """Append what is new of these rows; gives those that are set aside."""
    first_ms, last_ms = min(row.at_ms for row in rows), max(row.at_ms for row in rows)
    queues = {row.queue for row in rows}
    known = store.queue_states(cluster, queues, from_ms=first_ms, to_ms=last_ms + step_ms)
    found = taken(rows, known, step_ms=step_ms)
    store.append_queue_states(cluster, found.stretches)
    one = summary.clusters.setdefault(cluster, StatesOfCluster())
    one.new += found.new
    one.known += found.known
    one.stretches += len(found.stretches)
    one.first_ms = first_ms if one.first_ms is None else min(one.first_ms, first_ms)
    one.last_ms = last_ms if one.last_ms is None else max(one.last_ms, last_ms)
    one.pieces.append(
        pl.DataFrame([(row.queue, row.at_ms, *row.counts) for row in found.rows], schema=_ROWS, orient="row")
    )
    return found.aside


def _closing(store: Store, cluster: str, one: StatesOfCluster, step_ms: int) -> StateClosing:
    """Each row of the file beside what the books say of its instant."""
    booked = store.frame(_BOOKS, {"cluster": cluster, "first_ms": one.first_ms, "last_ms": one.last_ms})
    told = pl.concat(one.pieces).sort("at_ms")
    both = told.join_asof(
        booked,
        left_on="at_ms",
        right_on="start_ms",
        by="queue",
        suffix="_booked",
        check_sortedness=False,
    ).with_columns(there=(pl.col("at_ms") < pl.col("end_ms")).fill_null(value=False))
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_booked")) for name in Counts._fields)
    per_hour = step_ms / MS_PER_HOUR

    def hours(column: str, unit: int = 1) -> pl.Expr:
        # GPU-time of a large site does not fit into 64 bits.
        summed = pl.col(column).cast(pl.Int128).sum().cast(pl.Float64) / unit * per_hour
        return pl.when(pl.col(column).count() > 0).then(summed)

    there = pl.col("there")
    by_queue = (
        both.with_columns(
            *(
                pl.when(there).then(pl.col(f"{name}_booked")).alias(f"{name}_booked")
                for name in Counts._fields
            )
        )
        .group_by("queue")
        .agg(
            file_rows=pl.len(),
            books_rows=there.sum(),
            file_waiting_hours=hours("waiting_workloads"),
            books_waiting_hours=hours("waiting_workloads_booked"),
            file_held_hours=hours("held_micro_gpus", MICRO_PER_GPU),
            books_held_hours=hours("held_micro_gpus_booked", MICRO_PER_GPU),
            total_hours=hours("total_micro_gpus", MICRO_PER_GPU),
        )
        .sort("queue")
    )
    return StateClosing(
        lines=tuple(QueueLine(**row) for row in by_queue.iter_rows(named=True)),
        differing=both.filter(~(there & same)).height,
    )
