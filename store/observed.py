"""When each source was observed: stretches of sights, kept as few rows as they can be."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import duckdb
import polars as pl
import pyarrow as pa

from domain.gpu_sample import GPU_METRICS
from domain.observed import Observed, Stretch, merged
from domain.policy import patience_ms
from store.engine import Engine

# What new stretches may touch: those of the same kinds and sources around them.
_NEAR: Final = """
from observed_stretch
where
    cluster = $cluster
    and source in (select unnest($sources::varchar[]))
    and kind in (select unnest($kinds::varchar[]))
    and end_ms >= $from_ms
    and start_ms <= $to_ms
"""
_READ: Final = "select kind, source, node, start_ms, end_ms, resumed" + _NEAR
_DELETE: Final = "delete" + _NEAR
# The usual case: what is told goes on with a stretch after which no other is near, and that one grows.
_GROW: Final = """
update observed_stretch as known
set end_ms = greatest(known.end_ms, incoming.end_ms)
from incoming
where
    known.cluster = $cluster
    and known.kind = incoming.kind
    and known.source = incoming.source
    and known.node = incoming.node
    and known.start_ms < incoming.start_ms
    and known.end_ms + incoming.patience_ms >= incoming.start_ms
    and not exists (
        select 1 from observed_stretch as later
        where
            later.cluster = $cluster
            and later.kind = incoming.kind
            and later.source = incoming.source
            and later.node = incoming.node
            and later.start_ms > known.start_ms
            and later.start_ms <= incoming.end_ms + incoming.patience_ms
    )
"""
# The same for one, whose plan takes a fifth of the time: a watch tells of itself in each commit.
_GROW_ONE: Final = """
update observed_stretch
set end_ms = greatest(end_ms, $end_ms)
where
    cluster = $cluster
    and kind = $kind
    and source = $source
    and node = $node
    and start_ms < $start_ms
    and end_ms + $patience_ms >= $start_ms
    and start_ms = (
        select max(nearest.start_ms) from observed_stretch as nearest
        where
            nearest.cluster = $cluster
            and nearest.kind = $kind
            and nearest.source = $source
            and nearest.node = $node
            and nearest.start_ms <= $end_ms + $patience_ms
    )
"""
# As many as are told of one by one.
_FEW: Final = 4
_GROWN: Final = {
    "kind": pl.String,
    "source": pl.String,
    "node": pl.String,
    "start_ms": pl.Int64,
    "end_ms": pl.Int64,
    "patience_ms": pl.Int64,
}

# One row per watch that had begun by $as_of_ms, or went on by then, its silences included: a sight at that
# very instant tells that a watch missed nothing, and that it is read in time. Of samples one row per
# stretch that reaches beyond $start_ms.
_STRETCHES: Final = """
with numbered as (
    select
        *,
        count_if(not resumed) over (
            partition by cluster, kind, source, node order by start_ms rows unbounded preceding
        ) as number
    from observed_stretch
    where start_ms <= $as_of_ms and (node = '' or end_ms > $start_ms)
)

select cluster, kind, source, node, min(start_ms) as start_ms, max(end_ms) as end_ms
from numbered
group by cluster, kind, source, node, number
order by cluster, kind, source, node, start_ms
"""
# One row per instant and watch that had begun by then: up to where it had got, whatever came before.
_LAST_SIGHTS: Final = """
with instant as (
    select unnest($instants_ms::bigint[]) as at_ms
),

watch as (
    select distinct cluster, kind from observed_stretch where node = ''
),

stretch as (
    select cluster, kind, start_ms, end_ms from observed_stretch where node = ''
)

select instant.at_ms, watch.cluster, watch.kind, least(stretch.end_ms, instant.at_ms) as seen_ms
from watch
cross join instant
asof join stretch
    on watch.cluster = stretch.cluster and watch.kind = stretch.kind and instant.at_ms >= stretch.start_ms
"""
# One row per cluster: when it was first observed at all.
_FIRST: Final = "select cluster, min(start_ms) as first_ms from observed_stretch group by cluster"


def add(
    engine: Engine,
    connection: duckdb.DuckDBPyConnection,
    cluster: str,
    found: Mapping[Observed, Sequence[Stretch]],
) -> None:
    """Add what was observed of a cluster inside a transaction of the caller."""
    found = {whom: some for whom, some in found.items() if some}
    if not found or _have_grown(connection, cluster, found):
        return
    longest_ms = max(patience_ms(whom.kind) for whom in found)
    near = {
        "cluster": cluster,
        "sources": sorted({whom.source for whom in found}),
        "kinds": sorted({whom.kind for whom in found}),
        "from_ms": min(each.start_ms for some in found.values() for each in some) - longest_ms,
        "to_ms": max(each.end_ms for some in found.values() for each in some) + longest_ms,
    }
    known: dict[Observed, list[Stretch]] = defaultdict(list)
    for kind, of_source, node, start_ms, end_ms, resumed in connection.execute(_READ, near).fetchall():
        whom = Observed(kind, of_source, node)
        known[whom].append(Stretch(start_ms=start_ms, end_ms=end_ms, resumed=resumed))
    new = {
        whom: merged([*known.get(whom, ()), *found.get(whom, ())], patience_ms(whom.kind))
        for whom in known.keys() | found.keys()
    }
    if new == known:
        return
    rows = [
        {"cluster": cluster, **whom._asdict(), "start_ms": one.start_ms, "end_ms": one.end_ms,
         "resumed": one.resumed}
        for whom, some in new.items()
        for one in some
    ]  # fmt: skip
    connection.execute(_DELETE, near)
    connection.from_arrow(pa.Table.from_pylist(rows, schema=engine.schema("observed_stretch"))).insert_into(
        "observed_stretch"
    )


def _have_grown(
    connection: duckdb.DuckDBPyConnection, cluster: str, found: Mapping[Observed, Sequence[Stretch]]
) -> bool:
    """Let known stretches grow; gives whether that was all, else all is to be merged."""
    rows = [
        (*whom, each.start_ms, each.end_ms, patience_ms(whom.kind))
        for whom, some in found.items()
        for each in some
    ]
    if len(rows) > len(found):
        return False
    if len(rows) <= _FEW:
        told = [{"cluster": cluster} | dict(zip(_GROWN, row, strict=True)) for row in rows]
        return all(connection.execute(_GROW_ONE, one).fetchone() == (1,) for one in told)
    connection.register("incoming", pl.DataFrame(rows, schema=_GROWN, orient="row").to_arrow())
    try:
        (grown,) = connection.execute(_GROW, {"cluster": cluster}).fetchone() or (0,)
    finally:
        connection.unregister("incoming")
    return bool(grown == len(rows))


def of_samples(frame: pl.DataFrame) -> dict[Observed, list[Stretch]]:
    """When samples of each source tell of each node: a reading stands for one and a half of its steps."""
    place = ("source", "node")
    told = (
        frame.group_by(*place, "at_ms")
        .agg(end_ms=pl.col("at_ms").first() + pl.col("step_ms").max() * 3 // 2)
        .sort(*place, "at_ms", "end_ms")
        .with_columns(pl.col("end_ms").cum_max().over(place).alias("reach_ms"))
        .with_columns(
            (pl.col("at_ms") > pl.col("reach_ms").shift(1).over(place)).fill_null(value=True).alias("begins")
        )
        .with_columns(pl.col("begins").cum_sum().over(place).alias("number"))
        .group_by(*place, "number")
        .agg(pl.col("at_ms").min().alias("start_ms"), pl.col("end_ms").max())
        .sort(*place, "start_ms")
    )
    found: dict[Observed, list[Stretch]] = defaultdict(list)
    for source, node, start_ms, end_ms in told.select(*place, "start_ms", "end_ms").iter_rows():
        found[Observed(GPU_METRICS, source, node)].append(Stretch(start_ms=start_ms, end_ms=end_ms))
    return found


def stretches(engine: Engine, *, start_ms: int, as_of_ms: int) -> Sequence[Mapping[str, object]]:
    """
    Stretches that had begun by an instant or at it, by time of their source; a watch that went on is one.

    Of kinds of objects all, for a silence may reach into the window; of samples those in the window.
    Columns: cluster, kind, source, node, start_ms, end_ms.
    """
    return engine.kept_rows(_STRETCHES, {"start_ms": start_ms, "as_of_ms": as_of_ms})


def last_sights(engine: Engine, instants_ms: Sequence[int]) -> Sequence[Mapping[str, object]]:
    """
    When each kind of objects had been seen last by each of these instants; one not seen by then has no row.

    Columns: at_ms, cluster, kind, seen_ms.
    """
    return engine.kept_rows(_LAST_SIGHTS, {"instants_ms": tuple(instants_ms)})


def first_ms(engine: Engine) -> dict[str, int]:
    """When each cluster was first observed."""
    return {str(row["cluster"]): int(str(row["first_ms"])) for row in engine.kept_rows(_FIRST)}
