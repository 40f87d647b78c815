"""Lives: what was derived of workloads, nodes and queues, written anew with its watermark."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import duckdb
import polars as pl
import pyarrow as pa

from domain.errors import StoreError
from store import counted, dimensions, held_days
from store.engine import Engine
from store.open_until import FOREVER, OPEN_UNTIL, open_until, stamped
from store.workload_rows import FOLLOWING, completed

Rows: TypeAlias = pl.DataFrame | Sequence[Mapping[str, object]]

# Tables whose rows belong to a workload, each with how the rows of some workloads are removed that count
# since an instant or later: only there the table is looked through.
OF_WORKLOADS: Final = {
    name: f"delete from {name} where cluster = $cluster and workload_uid = any($cut::varchar[])"  # noqa: S608
    f" and {OPEN_UNTIL} >= $since_ms"
    for name in (
        "workload",
        "span",
        "attempt",
        "holding",
        "run",
        "eviction",
        "member_wait",
        "reservation",
        "quota_use",
        "member",
        "workload_shape",
        "workload_copy",
        "pod_device",
        "checkpoint_told",
    )
}
# Tables that are replaced for the whole cluster.
_OF_CLUSTER: Final = {
    "node_span": "delete from node_span where cluster = $cluster",
    "queue_span": "delete from queue_span where cluster = $cluster",
    "node_device": "delete from node_device where cluster = $cluster",
    "queue_flavor": "delete from queue_flavor where cluster = $cluster",
    "kueue_terms": "delete from kueue_terms where cluster = $cluster",
}
# One row per workload: until when the rows count that it has so far, the largest bigint where it has none.
_CUT: Final = """
insert into workload_cut (cluster, workload_uid, seq)
select $cluster as cluster, unnest($cut::varchar[]) as workload_uid, $seq as seq
on conflict do update set seq = excluded.seq
returning open_until_ms
"""
_OPEN_UNTIL: Final = """
insert into workload_cut (cluster, workload_uid, seq, open_until_ms)
select
    $cluster as cluster,
    unnest($cut::varchar[]) as workload_uid,
    $seq as seq,
    unnest($until_ms::bigint[]) as open_until_ms
on conflict do update set open_until_ms = excluded.open_until_ms
"""
MARK: Final = """
insert into watermark (cluster, job, seq) values ($cluster, $job, $seq)
on conflict do update set seq = excluded.seq
"""


class Watermark(NamedTuple):
    """Facts numbered up to `seq` are in the result of `job`."""

    job: str
    seq: int


def write_lives(
    engine: Engine,
    cluster: str,
    *,
    workload_uids: Collection[str],
    tables: Mapping[str, Rows],
    watermark: Watermark | tuple[str, int],
    advances: bool = True,
) -> None:
    """
    Replace all that is derived of these workloads, and of the cluster where given, in one transaction.

    Args:
        engine: the store.
        cluster: whose they are.
        workload_uids: workloads that were cut anew; one without rows now has none.
        tables: rows by table, each with all columns of its table but those that follow from the rows of
            a workload together: `open_until_ms`, and `workload_rows.FOLLOWING`. Those of a workload's
            tables belong to `workload_uids`; `node_span` and `queue_span` hold the whole cluster.
        watermark: the facts that are in it.
        advances: whether these are all the facts of the cluster up to there; else it stays where it is.

    Raises:
        StoreError: a table, column or type is wrong, or a row belongs to somebody else; nothing
            was written.
    """
    strangers = tables.keys() - OF_WORKLOADS.keys() - _OF_CLUSTER.keys()
    if strangers:
        message = f"tables {sorted(strangers)}: expected some of {[*OF_WORKLOADS, *_OF_CLUSTER]}"
        raise StoreError(message)
    incoming = {name: fitting(name, _given(engine, name), rows) for name, rows in tables.items()}
    for name, rows in incoming.items():
        check_owner(name, rows, column="cluster", owners={cluster})
        if name in OF_WORKLOADS:
            check_owner(name, rows, column="workload_uid", owners=set(workload_uids))
    until_ms = open_until(incoming)
    incoming = {
        name: stamped(rows, until_ms) if name in OF_WORKLOADS else rows for name, rows in incoming.items()
    }
    if "workload" in incoming:
        incoming["workload"] = completed(
            incoming["workload"], spans=incoming.get("span"), copies=incoming.get("workload_copy")
        )
    cut = {uid: until_ms.get(uid, FOREVER) for uid in sorted(set(workload_uids))}
    job, seq = watermark
    with engine.transaction() as connection:
        combinations, stays, told = _take_out(connection, cluster, cut, seq=seq)
        for name in incoming.keys() & _OF_CLUSTER.keys():
            connection.execute(_OF_CLUSTER[name], {"cluster": cluster})
        for name, rows in incoming.items():
            if rows.num_rows:
                ordered = rows.select(engine.schema(name).names)
                connection.from_arrow(ordered).insert_into(name)
        if cut:
            since_ms = min(cut.values())
            dimensions.bring_up_to_date(connection, cluster, list(cut), had=combinations, since_ms=since_ms)
            have = held_days.stays_of(connection, cluster, list(cut), since_ms=since_ms)
            held_days.drop_touched(connection, had=stays, have=have)
            if counted.told_of(connection, cluster, list(cut), since_ms=since_ms) != told:
                counted.drop_all(connection)
        if advances:
            connection.execute(MARK, {"cluster": cluster, "job": job, "seq": seq})


def _take_out(
    connection: duckdb.DuckDBPyConnection, cluster: str, cut: Mapping[str, int], *, seq: int
) -> tuple[dimensions.Combinations, held_days.Stays, counted.Told]:
    """
    Remove the rows of these workloads; gives what they had: combinations of dimensions, stays, what counted.

    Args:
        connection: in a transaction.
        cluster: whose they are.
        cut: until when the rows count that come in their place, by workload.
        seq: whatever is derived of these lives has news since.
    """
    if not cut:
        return frozenset(), Counter(), Counter()
    asked: dict[str, object] = {"cluster": cluster, "cut": list(cut)}
    had = connection.execute(_CUT, asked | {"seq": seq}).fetchall()
    since_ms = min(int(was) for (was,) in had)
    combinations = dimensions.of_workloads(connection, cluster, list(cut), since_ms=since_ms)
    stays = held_days.stays_of(connection, cluster, list(cut), since_ms=since_ms)
    told = counted.told_of(connection, cluster, list(cut), since_ms=since_ms)
    for delete in OF_WORKLOADS.values():
        connection.execute(delete, asked | {"since_ms": since_ms})
    connection.execute(_OPEN_UNTIL, asked | {"seq": seq, "until_ms": list(cut.values())})
    return combinations, stays, told


def _given(engine: Engine, name: str) -> pa.Schema:
    """The columns that are given; some of a workload's tables follow from the others."""
    derived = (OPEN_UNTIL, *FOLLOWING) if name in OF_WORKLOADS else ()
    return pa.schema([column for column in engine.schema(name) if column.name not in derived])


def fitting(name: str, schema: pa.Schema, rows: Rows) -> pa.Table:
    """The rows in the order and types of the table's columns."""
    for given in [rows.columns] if isinstance(rows, pl.DataFrame) else rows:
        _check_columns(name, schema, set(given))
    try:
        return pa.Table.from_arrays([_column(rows, column) for column in schema], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as cause:
        expected = ", ".join(f"{column.name} {column.type}" for column in schema)
        message = f"table {name}: {cause}; expected {expected}"
        raise StoreError(message) from cause


def _column(rows: Rows, column: pa.Field) -> pa.Array:
    if isinstance(rows, pl.DataFrame):
        series = rows[column.name]
        if series.dtype.is_float():
            _refuse_fraction(column)
        return series.to_arrow().cast(column.type)
    values = [row[column.name] for row in rows]
    if float in set(map(type, values)):
        _refuse_fraction(column)
    return pa.array(values, column.type)


def _refuse_fraction(column: pa.Field) -> None:
    # Arrow would cut the fraction off without a word.
    if pa.types.is_integer(column.type):
        message = f"column {column.name} has a fraction"
        raise pa.ArrowInvalid(message)


def _check_columns(name: str, schema: pa.Schema, given: set[str]) -> None:
    wanted = set(schema.names)
    if given != wanted:
        missing, unknown = sorted(wanted - given), sorted(given - wanted)
        message = f"table {name}: missing columns {missing}, unknown columns {unknown}"
        raise StoreError(message)


def check_owner(name: str, rows: pa.Table, *, column: str, owners: set[str]) -> None:
    """Refuse rows of somebody else; raises StoreError."""
    strangers = set(rows[column].unique().to_pylist()) - owners
    if strangers:
        first = min(map(str, strangers))
        message = f"table {name}: {column} {first!r} is not among those that are replaced"
        raise StoreError(message)
