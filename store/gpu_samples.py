"""GPU samples: what sources read of devices, appended once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import duckdb
import polars as pl

from domain.errors import StoreError
from domain.gpu_sample import LONGEST_STEP_MS
from store import observed
from store.engine import Engine

_GIVEN: Final = ("cluster", "seq")

# One row where samples of one of the sources are stored from the time of those that come, by their ends.
_OVERLAP: Final = """
select 1
from gpu_sample_mark as known
inner join incoming as told
    on known.source = told.source
    and known.first_sample_ms <= told.last_ms
    and known.last_sample_ms >= told.first_ms
where known.cluster = $cluster
limit 1
"""
# What is stored already is not stored again: a repeated import changes nothing.
_FRESH: Final = """
select incoming.*
from incoming
where not exists (
    select 1 from gpu_sample as stored
    where
        stored.cluster = $cluster
        and stored.source = incoming.source
        and stored.at_ms >= $first_ms
        and stored.at_ms <= $last_ms
        and stored.at_ms = incoming.at_ms
        and stored.node = incoming.node
        and stored.device = incoming.device
        and stored.namespace = incoming.namespace
        and stored.pod = incoming.pod
        and stored.activity is not distinct from incoming.activity
        and stored.memory_mib is not distinct from incoming.memory_mib
        and stored.shares = incoming.shares
)
"""
_APPEND: Final = """
insert into gpu_sample by name
select incoming.*, $cluster as cluster, $seq as seq
from incoming
"""
_MARK: Final = """
insert into gpu_sample_mark by name
select incoming.*, $cluster as cluster
from incoming
on conflict do update set
    read_until_ms = greatest(read_until_ms, excluded.read_until_ms),
    seen_ms = greatest(seen_ms, excluded.seen_ms),
    last_error = excluded.last_error,
    first_sample_ms = least(first_sample_ms, excluded.first_sample_ms),
    last_sample_ms = greatest(last_sample_ms, excluded.last_sample_ms)
"""
_UNMARK: Final = """
delete from gpu_sample_mark where cluster = $cluster and source = $source and last_sample_ms is null
"""
_READ_COLUMNS: Final = {
    "source": pl.String,
    "read_until_ms": pl.Int64,
    "seen_ms": pl.Int64,
    "last_error": pl.String,
}
_NO_ENDS: Final = pl.DataFrame(schema={"source": pl.String, "first_ms": pl.Int64, "last_ms": pl.Int64})
_MARKS: Final = "select gpu_sample_mark.* from gpu_sample_mark order by cluster, source"
_NEWEST: Final = "select coalesce(max(seq), 0) as seq from gpu_sample"

# One row per source and cause: what was set aside so far, and now.
_SET_ASIDE: Final = """
select source, because, sum(count)::bigint as count, max(observed_ms) as observed_ms
from (
    select source, because, count, observed_ms from set_aside
    where cluster = $cluster and source in (select source from incoming)
    union all
    select source, because, count, observed_ms from incoming
) as told
group by source, because
"""
_CLEAR_ASIDE: Final = """
delete from set_aside where cluster = $cluster and source in (select source from incoming)
"""
_ADD_ASIDE: Final = """
insert into set_aside by name
select incoming.*, $cluster as cluster, '' as sample
from incoming
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """How a reading of a source went: up to which instant it is complete, and when it was made."""

    until_ms: int
    seen_ms: int
    error: str = ""


def append(
    engine: Engine,
    cluster: str,
    frame: pl.DataFrame,
    *,
    marks: Mapping[str, Read],
    set_aside: Mapping[str, Mapping[str, int]],
) -> int:
    """
    Append what sources read of a cluster's GPUs, with their marks, in one transaction.

    Args:
        engine: the store.
        cluster: whose GPUs they are.
        frame: columns as table `gpu_sample`, less cluster and seq; the same sample of the same source is
            kept once.
        marks: up to where each source is read.
        set_aside: how much was not understood, by source and cause.

    Returns:
        How many rows were new.

    Raises:
        StoreError: a column is missing, a value is not finite, a step is not of 1 ms to 30 min, or a source
            has no mark.
    """
    wanted = [name for name in engine.schema("gpu_sample").names if name not in _GIVEN]
    if sorted(frame.columns) != sorted(wanted):
        message = f"table gpu_sample: columns {sorted(frame.columns)}; expected {sorted(wanted)}"
        raise StoreError(message)
    _check(frame)
    ends = _ends(frame)
    sources = set(ends["source"])
    if strangers := sources - marks.keys():
        message = f"table gpu_sample: samples of {min(strangers)!r}; expected a mark of each source"
        raise StoreError(message)
    with engine.transaction(changes_lives=False) as connection:
        given = _Given(connection, cluster)
        fresh = given.unless_stored(frame.select(wanted), ends)
        if fresh.height:
            (newest,) = connection.execute(_NEWEST).fetchall()[0]
            given.run(_APPEND, fresh, seq=newest + 1)
        observed.add(engine, connection, cluster, observed.of_samples(frame))
        given.run(_MARK, _marked(marks, ends))
        # Of samples that were known already, what was set aside is counted already.
        new = sources if fresh.height == frame.height else set(fresh["source"].unique())
        told = [
            (source, because, count, marks[source].seen_ms)
            for source, causes in set_aside.items()
            if source in new or source not in sources
            for because, count in causes.items()
        ]
        if told:
            given.count_aside(told)
    return fresh.height


def mark(engine: Engine, cluster: str, reads: Mapping[str, Read]) -> None:
    """Note how readings of these sources went that gave nothing: what was read before stays read."""
    with engine.transaction(changes_lives=False) as connection:
        _Given(connection, cluster).run(_MARK, _marked(reads, _NO_ENDS))


def unmark(engine: Engine, cluster: str, source: str) -> None:
    """Take back the mark of a source that never gave a sample."""
    with engine.transaction(changes_lives=False) as connection:
        connection.execute(_UNMARK, {"cluster": cluster, "source": source})


def marks(engine: Engine) -> list[dict[str, object]]:
    """Up to where each source of samples is read, how its last reading went, and its samples' ends."""
    return [dict(mark) for mark in engine.kept_rows(_MARKS)]


class _Given:
    """Frames given to statements about one cluster, inside a transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, cluster: str) -> None:
        self._connection = connection
        self._cluster = cluster

    def run(self, sql: str, incoming: pl.DataFrame, **params: object) -> duckdb.DuckDBPyConnection:
        """Execute a statement about the frame, which it calls `incoming`."""
        self._connection.register("incoming", incoming.to_arrow())
        try:
            return self._connection.execute(sql, {"cluster": self._cluster, **params})
        finally:
            self._connection.unregister("incoming")

    def unless_stored(self, frame: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
        """The rows that are not stored yet, by the ends of each source."""
        if frame.is_empty():
            return frame
        # To look for each sample costs a third of an import, and most sources tell of new times only.
        if self._frame(_OVERLAP, ends).is_empty():
            return frame
        span = {"first_ms": frame["at_ms"].min(), "last_ms": frame["at_ms"].max()}
        return self._frame(_FRESH, frame, **span)

    def count_aside(self, told: list[tuple[str, str, int, int]]) -> None:
        """Add to what was set aside: source, cause, count and when."""
        schema = {"source": pl.String, "because": pl.String, "count": pl.Int64, "observed_ms": pl.Int64}
        known = self._frame(_SET_ASIDE, pl.DataFrame(told, schema=schema, orient="row"))
        self.run(_CLEAR_ASIDE, known)
        self.run(_ADD_ASIDE, known)

    def _frame(self, sql: str, incoming: pl.DataFrame, **params: object) -> pl.DataFrame:
        self._connection.register("incoming", incoming.to_arrow())
        try:
            given = {"cluster": self._cluster, **params}
            answer: pl.DataFrame = self._connection.sql(sql, params=given).pl()
            return answer
        finally:
            self._connection.unregister("incoming")


def _ends(frame: pl.DataFrame) -> pl.DataFrame:
    """One row per source: the instants of its first and its last sample."""
    at_ms = pl.col("at_ms")
    return frame.group_by("source").agg(first_ms=at_ms.min(), last_ms=at_ms.max())


def _marked(reads: Mapping[str, Read], ends: pl.DataFrame) -> pl.DataFrame:
    """One row per source that was read, with the ends of its samples where it told some."""
    rows = [(source, read.until_ms, read.seen_ms, read.error) for source, read in reads.items()]
    told = ends.rename({"first_ms": "first_sample_ms", "last_ms": "last_sample_ms"})
    return pl.DataFrame(rows, schema=_READ_COLUMNS, orient="row").join(told, on="source", how="left")


def _check(frame: pl.DataFrame) -> None:
    wrong = frame.filter(
        pl.any_horizontal(~pl.col("activity", "memory_mib", "memory_total_mib").is_finite())
        | ~pl.col("step_ms").is_between(1, LONGEST_STEP_MS)
    )
    if wrong.height:
        message = (
            f"table gpu_sample: {wrong.row(0, named=True)}; expected finite values or none, and a step of "
            "at most 30 minutes"
        )
        raise StoreError(message)
