"""Lives: what was derived of workloads, nodes and queues, written anew with its watermark."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa

from domain.errors import StoreError
from store.engine import Engine

Rows: TypeAlias = pl.DataFrame | Sequence[Mapping[str, object]]

# Tables whose rows belong to a workload, each with how the rows of some workloads are removed.
OF_WORKLOADS: Final = {
    "workload": "delete from workload where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "span": "delete from span where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "attempt": "delete from attempt where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "holding": "delete from holding where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "run": "delete from run where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "eviction": "delete from eviction where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "member_wait": "delete from member_wait where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "reservation": "delete from reservation where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "quota_use": "delete from quota_use where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "member": "delete from member where cluster = $cluster and workload_uid = any($cut::varchar[])",
    "workload_shape": (
        "delete from workload_shape where cluster = $cluster and workload_uid = any($cut::varchar[])"
    ),
    "workload_copy": (
        "delete from workload_copy where cluster = $cluster and workload_uid = any($cut::varchar[])"
    ),
    "pod_device": "delete from pod_device where cluster = $cluster and workload_uid = any($cut::varchar[])",
}
# Tables that are replaced for the whole cluster.
_OF_CLUSTER: Final = {
    "node_span": "delete from node_span where cluster = $cluster",
    "queue_span": "delete from queue_span where cluster = $cluster",
    "node_device": "delete from node_device where cluster = $cluster",
    "queue_flavor": "delete from queue_flavor where cluster = $cluster",
    "kueue_terms": "delete from kueue_terms where cluster = $cluster",
}
_CUT: Final = """
insert into workload_cut (cluster, workload_uid, seq)
select $cluster as cluster, unnest($cut::varchar[]) as workload_uid, $seq as seq
on conflict do update set seq = excluded.seq
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
        tables: rows by table, each with all columns of its table; those of a workload's tables
            belong to `workload_uids`. `node_span` and `queue_span` hold the whole cluster.
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
    incoming = {name: fitting(name, engine.schema(name), rows) for name, rows in tables.items()}
    for name, rows in incoming.items():
        check_owner(name, rows, column="cluster", owners={cluster})
        if name in OF_WORKLOADS:
            check_owner(name, rows, column="workload_uid", owners=set(workload_uids))
    with engine.transaction() as connection:
        if workload_uids:
            for delete in OF_WORKLOADS.values():
                connection.execute(delete, {"cluster": cluster, "cut": list(workload_uids)})
        for name in incoming.keys() & _OF_CLUSTER.keys():
            connection.execute(_OF_CLUSTER[name], {"cluster": cluster})
        for name, rows in incoming.items():
            if rows.num_rows:
                connection.from_arrow(rows).insert_into(name)
        job, seq = watermark
        if workload_uids:
            # Whatever is derived of these lives has news.
            connection.execute(_CUT, {"cluster": cluster, "cut": sorted(set(workload_uids)), "seq": seq})
        if advances:
            connection.execute(MARK, {"cluster": cluster, "job": job, "seq": seq})


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
    values = (
        rows[column.name].to_list() if isinstance(rows, pl.DataFrame) else [row[column.name] for row in rows]
    )
    if pa.types.is_integer(column.type) and any(isinstance(value, float) for value in values):
        # Arrow would cut the fraction off without a word.
        message = f"column {column.name} has a fraction"
        raise pa.ArrowInvalid(message)
    return pa.array(values, column.type)


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
