"""
What a file of jobs says in its own columns, against what the books say after it was taken in.

Both are counted stay by stay and added up by team and outcome. Lengths come from the file's own column
where it has one, and from its stamps otherwise.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import polars as pl

from collector.imports.facts import pod_uid, version_of
from collector.imports.row import GPU, Ending, JobRow
from domain.quantity import MICRO_GPU, MICRO_PER_GPU, micro_gpus
from domain.window import MS_PER_HOUR, MS_PER_SECOND
from store.embedded import Store

NEVER_STARTED: Final = "never_started"
_MICRO_MS: Final = MICRO_PER_GPU * MS_PER_HOUR
_ROWS: Final = pl.Schema({
    "pod_uid": pl.String,
    "progress": pl.Int8,
    "line": pl.Int64,
    "team": pl.String,
    "outcome": pl.String,
    "micro_gpus": pl.Int64,
    "told_ms": pl.Int64,
    "between_ms": pl.Int64,
})  # fmt: skip

_BOOKS: Final = """
-- One row per stay of an imported job: what the books say of it.
select
    member.object_uid as pod_uid,
    workload.namespace as team,
    workload.skewed <> '' as skewed,
    case
        when holding.pod_uid is not null then attempt.outcome
        when workload.ended_ms is null then 'open'
        else 'never_started'
    end as outcome,
    holding.micro_gpus as micro_gpus,
    coalesce(holding.released_ms - holding.bound_ms, 0) as held_ms
from member
inner join workload
    on member.cluster = workload.cluster and member.workload_uid = workload.workload_uid
left join holding
    on member.cluster = holding.cluster
    and member.workload_uid = holding.workload_uid
    and member.object_uid = holding.pod_uid
left join attempt
    on holding.cluster = attempt.cluster
    and holding.workload_uid = attempt.workload_uid
    and holding.attempt = attempt.number
where
    member.cluster = $cluster
    and member.kind = 'Pod'
    and member.object_uid in (select unnest($uids::varchar[]))
"""
# So many stays are compared at once.
_AT_ONCE: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Stays and GPU-hours of a team and outcome: by the file, and by the books."""

    team: str
    outcome: str
    file_stays: int
    books_stays: int
    file_hours: float
    books_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """
    The file's totals against those of the books.

    `suspended_hours` are GPU-hours between start and end in which, by the file's own column, the job
    did not run: the books count them as held. `unknown` stays have a number of GPUs that nobody knows;
    they count no hours. `skewed` ones have stamps that contradict each other, and stay out of figures.
    """

    lines: tuple[Line, ...]
    suspended_hours: float
    unknown: int
    skewed: int
    unexplained_micro_ms: int
    unexplained_stays: int

    @property
    def closes(self) -> bool:
        """Whether every stay is in the books, with its outcome, and every difference is explained."""
        return self.unexplained_micro_ms == 0 and self.unexplained_stays == 0


@dataclass(slots=True)
class Ledger:
    """The stays of a file, as rows come: packed, of a file of millions there is nothing else that stays."""

    pieces: list[bytes] = field(default_factory=list)
    stays: int = 0

    def add(self, rows: Iterable[JobRow]) -> None:
        """Take in rows; of those of one stay the one with the most to tell counts."""
        piece = pl.DataFrame(list(map(_said, rows)), schema=_ROWS, orient="row")
        if piece.height:
            packed = io.BytesIO()
            piece.write_ipc(packed, compression="zstd")
            self.pieces.append(packed.getvalue())
            self.stays += piece.height

    def closing(self, store: Store, cluster: str) -> Reconciliation:
        """Compare with the books of the cluster."""
        parts = -(-self.stays // _AT_ONCE)
        return _added_up([_compared(*self._part(store, cluster, part, parts)) for part in range(parts)])

    def _part(self, store: Store, cluster: str, part: int, parts: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """A part of the stays, all that is said of one in the same, and what the books say of them."""
        mine = pl.col("pod_uid").hash() % parts == part
        said = pl.concat([pl.read_ipc(io.BytesIO(piece)).filter(mine) for piece in self.pieces])
        said = said.sort("progress", "line").unique("pod_uid", keep="last", maintain_order=True)
        booked = store.frame(_BOOKS, {"cluster": cluster, "uids": said["pod_uid"].to_list()})
        return said, booked.with_columns(pl.col("held_ms").cast(pl.Int64))


class _Compared(NamedTuple):
    """Stays of a file against those of the books: sums by team and outcome, and of all."""

    lines: pl.DataFrame
    apart: dict[str, Any]


def reconciled(said: pl.DataFrame, booked: pl.DataFrame) -> Reconciliation:
    """
    Compare the stays of a file with those of the books.

    Args:
        said: one row per stay; pod_uid, progress, line, team, outcome, micro_gpus (null where nobody knows),
            told_ms, between_ms.
        booked: one row per stay; pod_uid, team, skewed, outcome, micro_gpus, held_ms. Stays of other files
            are left out.
    """
    return _added_up([_compared(said, booked)])


def _compared(said: pl.DataFrame, booked: pl.DataFrame) -> _Compared:
    both = said.join(booked, on="pod_uid", how="left", suffix="_booked", maintain_order="left")
    over = pl.col("outcome") != "open"
    # GPU-time of one large job fits into 64 bits, that of a cluster does not.
    wide = pl.col("micro_gpus").cast(pl.Int128)
    booked_wide = pl.col("micro_gpus_booked").cast(pl.Int128)
    both = both.with_columns(
        file=pl.when(over).then(wide * pl.col("told_ms")).fill_null(0),
        books=pl.when(pl.col("outcome_booked") != "open").then(booked_wide * pl.col("held_ms")).fill_null(0),
        gap=pl.when(over).then(wide * (pl.col("between_ms") - pl.col("told_ms"))).fill_null(0),
    )
    by = ["team", "outcome"]
    file_side = both.group_by(by).agg(file_stays=pl.len(), file=pl.col("file").sum())
    books_side = (
        both.filter(pl.col("outcome_booked").is_not_null())
        .select(team="team_booked", outcome="outcome_booked", books="books")
        .group_by(by)
        .agg(books_stays=pl.len(), books=pl.col("books").sum())
    )
    lines = file_side.join(books_side, on=by, how="full", coalesce=True).fill_null(0)
    # Each stay by itself, so that two mistakes do not make up for each other.
    apart = both.select(
        micro_ms=(pl.col("books") - pl.col("file") - pl.col("gap")).abs().sum(),
        stays=(pl.col("outcome").ne_missing(pl.col("outcome_booked"))).sum(),
        gap=pl.col("gap").sum(),
        unknown=pl.col("micro_gpus").is_null().sum(),
        skewed=pl.col("skewed").fill_null(value=False).sum(),
    ).row(0, named=True)
    return _Compared(lines, apart)


def _added_up(parts: Sequence[_Compared]) -> Reconciliation:
    """What parts without a stay in common say together."""
    lines = pl.concat([part.lines for part in parts]) if parts else pl.DataFrame()
    if parts:
        lines = lines.group_by("team", "outcome").sum().sort("team", "outcome")
    apart = {
        name: sum(part.apart[name] for part in parts)
        for name in ("micro_ms", "stays", "gap", "unknown", "skewed")
    }
    return Reconciliation(
        lines=tuple(
            Line(
                team=row["team"],
                outcome=row["outcome"],
                file_stays=row["file_stays"],
                books_stays=row["books_stays"],
                file_hours=row["file"] / _MICRO_MS,
                books_hours=row["books"] / _MICRO_MS,
            )
            for row in lines.iter_rows(named=True)
        ),
        suspended_hours=apart["gap"] / _MICRO_MS,
        unknown=apart["unknown"],
        skewed=apart["skewed"],
        unexplained_micro_ms=apart["micro_ms"],
        unexplained_stays=apart["stays"],
    )


def _said(row: JobRow) -> tuple[str, int, int, str, str, int | None, int, int]:
    between_ms = 0
    if row.start_ms is not None and row.end_ms is not None:
        between_ms = row.end_ms - row.start_ms
    told_ms = between_ms if row.told_seconds is None else round(row.told_seconds * MS_PER_SECOND)
    outcome = str(row.ending.outcome)
    if row.start_ms is None and row.ending is not Ending.OPEN:
        outcome, told_ms = NEVER_STARTED, 0
    return (
        pod_uid(row),
        version_of(row).progress,
        row.line,
        row.team,
        outcome,
        _asked(row),
        told_ms,
        between_ms,
    )


def _asked(row: JobRow) -> int | None:
    """Micro-GPU by the row; None for shares of which nobody says how large they are."""
    if row.gpus.keys() <= {GPU, MICRO_GPU}:
        return micro_gpus(row.gpus)
    return None
