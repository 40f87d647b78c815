"""What is derived of lives and samples: rows replaced by key or from an instant on, with a watermark."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from domain.errors import StoreError
from store.engine import Engine
from store.lives import MARK, Rows, Watermark, check_owner, fitting
from store.open_until import FOREVER

# Tables that stages derive; the name of a table stands in the SQL, so it is never anybody's text.
TABLES: Final = frozenset(
    {
        "activity_span",
        "gpu_hour",
        "waste_piece",
        "waste_account",
        "own_failure_wait",
        "demand_step",
        "unswept",
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

_CUT_AFTER: Final = """
-- One row per workload that was cut after another one, in the order of cuts; at most so many.
select workload_uid, seq
from workload_cut
where cluster = $cluster and seq >= $seq and (seq > $seq or workload_uid > $uid)
order by seq, workload_uid
limit $most
"""
_WATERMARK: Final = "select seq from watermark where cluster = $cluster and job = $job"

_COUNTING: Final = """
-- One row: the first and the last instant until which rows of one of these workloads count; of how many it is
-- known.
select min(open_until_ms) as since_ms, max(open_until_ms) as until_ms, count(*)::bigint as known
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


def cut_since(engine: Engine, cluster: str, job: str, *, most: int) -> Iterator[set[str]]:
    """Workloads that were cut, or vanished, since the job's watermark; so many at a time, in order."""
    marks = engine.rows(_WATERMARK, {"cluster": cluster, "job": job})
    after: dict[str, object] = {"seq": int(str(marks[0]["seq"])) + 1 if marks else 0, "uid": ""}
    while rows := engine.rows(_CUT_AFTER, {"cluster": cluster, "most": most, **after}):
        yield {str(row["workload_uid"]) for row in rows}
        after = {"seq": rows[-1]["seq"], "uid": rows[-1]["workload_uid"]}


def counting(engine: Engine, cluster: str, uids: Collection[str]) -> tuple[int, int]:
    """The least and the largest `open_until_ms` of rows of these workloads: others need no look."""
    (row,) = engine.rows(_COUNTING, {"cluster": cluster, "uids": list(uids)})
    since_ms, until_ms = row["since_ms"], row["until_ms"]
    if isinstance(since_ms, int) and isinstance(until_ms, int) and row["known"] == len(set(uids)):
        return since_ms, until_ms
    return 0, FOREVER


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
