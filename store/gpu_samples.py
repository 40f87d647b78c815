"""GPU samples: what sources read of devices, appended once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import duckdb
import polars as pl
import pyarrow as pa

from domain.errors import StoreError
from domain.gpu_sample import LONGEST_STEP_MS
from store import observed
from store.engine import Engine

_GIVEN: Final = ("cluster", "source", "seq")

# One row where samples of the source are stored from the time of those that come.
_OVERLAP: Final = """
select 1 from gpu_sample_mark
where
    cluster = $cluster and source = $source and first_sample_ms <= $last_ms and last_sample_ms >= $first_ms
"""
_APPEND: Final = """
insert into gpu_sample by name
select incoming.*, $cluster as cluster, $source as source, $seq as seq
from incoming
"""
# What is stored already is not stored again: a repeated import changes nothing.
_IF_NEW: Final = """
where not exists (
    select 1 from gpu_sample as stored
    where
        stored.cluster = $cluster
        and stored.source = $source
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
_MARK: Final = """
insert into gpu_sample_mark
values ($cluster, $source, $read_until_ms, $seen_ms, $last_error, $first_ms::bigint, $last_ms::bigint)
on conflict do update set
    read_until_ms = greatest(read_until_ms, excluded.read_until_ms),
    seen_ms = greatest(seen_ms, excluded.seen_ms),
    last_error = excluded.last_error,
    first_sample_ms = least(first_sample_ms, excluded.first_sample_ms),
    last_sample_ms = greatest(last_sample_ms, excluded.last_sample_ms)
"""
_MARKS: Final = "select gpu_sample_mark.* from gpu_sample_mark order by cluster, source"
_NEWEST: Final = "select coalesce(max(seq), 0) as seq from gpu_sample"

# One row per cause: what was set aside so far, and now.
_SET_ASIDE: Final = """
select because, sum(count)::bigint as count, max(observed_ms) as observed_ms
from (
    select because, count, observed_ms from set_aside where cluster = $cluster and source = $source
    union all
    select unnest($causes::varchar[]), unnest($counts::bigint[]), $seen_ms
) as told
group by because
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
    source: str,
    *,
    frame: pl.DataFrame,
    mark: Read,
    set_aside: Mapping[str, int],
) -> int:
    """
    Append what a source read of a cluster's GPUs, with its mark, in one transaction.

    Args:
        engine: the store.
        cluster: whose GPUs they are.
        source: who told; the same sample of the same source is kept once.
        frame: columns as table `gpu_sample`, less cluster, source and seq.
        mark: up to where the source is read.
        set_aside: how much was not understood, by cause.

    Returns:
        How many rows were new.

    Raises:
        StoreError: a column is missing, a value is not finite, or a step is not of 1 ms to 30 min.
    """
    wanted = [name for name in engine.schema("gpu_sample").names if name not in _GIVEN]
    if sorted(frame.columns) != sorted(wanted):
        message = f"table gpu_sample: columns {sorted(frame.columns)}; expected {sorted(wanted)}"
        raise StoreError(message)
    _check(frame)
    about: dict[str, object] = {"cluster": cluster, "source": source}
    span = {"first_ms": frame["at_ms"].min(), "last_ms": frame["at_ms"].max()}
    with engine.transaction() as connection:
        new = 0
        if frame.height:
            (newest,) = connection.execute(_NEWEST).fetchall()[0]
            connection.register("incoming", frame.select(wanted).to_arrow())
            told = about | {"seq": newest + 1}
            # To look for each sample costs a third of an import, and most sources tell of new times only.
            if connection.execute(_OVERLAP, about | span).fetchall():
                new = _count(connection.execute(_APPEND + _IF_NEW, told | span))
            else:
                new = _count(connection.execute(_APPEND, told))
            connection.unregister("incoming")
            observed.add(engine, connection, cluster, observed.of_samples(source, frame))
        connection.execute(_MARK, about | span | _told(mark))
        if set_aside and (new or not frame.height):
            _count_aside(connection, about, set_aside, mark.seen_ms)
    return new


def mark(engine: Engine, cluster: str, source: str, read: Read) -> None:
    """Note how a reading went that gave nothing: what was read before stays read."""
    about = {"cluster": cluster, "source": source, "first_ms": None, "last_ms": None}
    with engine.transaction() as connection:
        connection.execute(_MARK, about | _told(read))


def marks(engine: Engine) -> list[dict[str, object]]:
    """Up to where each source of samples is read, how its last reading went, and its samples' ends."""
    return [dict(mark) for mark in engine.kept_rows(_MARKS)]


def _told(read: Read) -> dict[str, object]:
    return {"read_until_ms": read.until_ms, "seen_ms": read.seen_ms, "last_error": read.error}


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


def _count_aside(
    connection: duckdb.DuckDBPyConnection, about: dict[str, object], counts: Mapping[str, int], seen_ms: int
) -> None:
    given = about | {"causes": list(counts), "counts": list(counts.values()), "seen_ms": seen_ms}
    known = connection.execute(_SET_ASIDE, given).fetchall()
    connection.execute("delete from set_aside where cluster = $cluster and source = $source", about)
    rows = [about | {"because": why, "sample": "", "count": n, "observed_ms": at} for why, n, at in known]
    schema = pa.schema(
        [(name, pa.string()) for name in ("cluster", "source", "because", "sample")]
        + [(name, pa.int64()) for name in ("count", "observed_ms")]
    )
    connection.from_arrow(pa.Table.from_pylist(rows, schema=schema)).insert_into("set_aside")


def _count(done: duckdb.DuckDBPyConnection) -> int:
    rows = done.fetchall()
    return int(rows[0][0]) if rows else 0
