"""What is derived of lives and samples: rows replaced by key or from an instant on, with a watermark."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from domain.errors import StoreError
from store.engine import Engine
from store.facts import Changed
from store.lives import MARK, Rows, Watermark, check_owner, fitting

# Tables that stages derive; the name of a table stands in the SQL, so it is never anybody's text.
TABLES: Final = frozenset(
    {
        "activity_span",
        "gpu_hour",
        "waste_piece",
        "waste_account",
        "own_failure_wait",
        "demand_step",
        "share_span",
        "team_share_span",
        "pool_span",
        "denial",
        "node_price",
        "wait_reason",
        "reason_look",
        "eta_told",
    }
)

_CUT_SINCE: Final = """
-- One row per workload that was cut after the job's watermark.
select workload_uid, seq
from workload_cut
where
    cluster = $cluster
    and seq > coalesce(
        (
            select watermark.seq from watermark
            where watermark.cluster = $cluster and watermark.job = $job
        ),
        -1
    )
"""

_COUNTING_SINCE: Final = """
-- One row: the earliest instant until which rows of one of these workloads count; of how many it is known.
select min(open_until_ms) as since_ms, count(*)::bigint as known
from workload_cut
where cluster = $cluster and workload_uid = any($uids::varchar[])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """
    New rows of a table, and which old ones they replace.

    Args:
        table: one of `TABLES`.
        rows: with all columns of the table.
        keys: a column, and the values of which all rows are replaced.
        since: a column of instants, and the first one from which all rows are replaced. With neither,
            the whole cluster is replaced; with both, what is true of both.
    """

    table: str
    rows: Rows
    keys: tuple[str, Collection[str]] | None = None
    since: tuple[str, int] | None = None


def cut_since(engine: Engine, cluster: str, job: str) -> Changed:
    """Workloads that were cut, or vanished, since the job's watermark; and the next watermark."""
    rows = engine.rows(_CUT_SINCE, {"cluster": cluster, "job": job})
    seq = max((row["seq"] for row in rows if isinstance(row["seq"], int)), default=0)
    return Changed({str(row["workload_uid"]) for row in rows}, seq)


def counting_since(engine: Engine, cluster: str, uids: Collection[str]) -> int:
    """The least `open_until_ms` of rows of these workloads: no others need be looked through for them."""
    (row,) = engine.rows(_COUNTING_SINCE, {"cluster": cluster, "uids": list(uids)})
    since_ms = row["since_ms"]
    return since_ms if isinstance(since_ms, int) and row["known"] == len(set(uids)) else 0


def replace(
    engine: Engine,
    cluster: str,
    replacements: Sequence[Replacement],
    watermark: Watermark | tuple[str, int] | None = None,
) -> None:
    """
    Replace rows of derived tables and set the watermark, all in one transaction.

    Raises:
        StoreError: a table, column or type is wrong, or a row is of another cluster; nothing was
            written.
    """
    strangers = {each.table for each in replacements} - TABLES
    if strangers:
        message = f"tables {sorted(strangers)}: expected some of {sorted(TABLES)}"
        raise StoreError(message)
    incoming = [(each, fitting(each.table, engine.schema(each.table), each.rows)) for each in replacements]
    for each, rows in incoming:
        check_owner(each.table, rows, column="cluster", owners={cluster})
    with engine.transaction(changes_lives=False) as connection:
        for each, rows in incoming:
            sql, parameters = _delete(each)
            connection.execute(sql, {"cluster": cluster} | parameters)
            if rows.num_rows:
                connection.from_arrow(rows).insert_into(each.table)
        if watermark is not None:
            job, seq = watermark
            connection.execute(MARK, {"cluster": cluster, "job": job, "seq": seq})


def _delete(each: Replacement) -> tuple[str, dict[str, object]]:
    # The table is one of ours, and the columns are checked against its schema by their use.
    sql = f"delete from {each.table} where cluster = $cluster"  # noqa: S608
    asked: dict[str, object] = {}
    if each.keys is not None:
        column, values = each.keys
        sql += f" and {column} = any($keys::varchar[])"
        asked["keys"] = list(values)
    if each.since is not None:
        column, at_ms = each.since
        sql += f" and {column} >= $since_ms"
        asked["since_ms"] = at_ms
    return sql, asked
