"""Which combinations of dimensions workloads have had, kept where lives are written."""

from collections.abc import Collection
from typing import Final, TypeAlias

import duckdb

# The columns of a combination.
_NAMES: Final = "cluster, queue, service_class, priority_class, team, user_name, gpu_model, gang_size"

# One row per combination of these workloads, of which the rows count since an instant or later.
_OF_SOME: Final = f"""
select {_NAMES}, min(since_ms)::bigint as since_ms
from settled_dimensions
where
    cluster = $cluster
    and workload_uid = any($cut::varchar[])
    and open_until_ms >= $since_ms
group by all
"""  # noqa: S608 (names from here)
_ADD: Final = f"""
insert into dimensions_seen ({_NAMES}, since_ms)
{_OF_SOME}
on conflict do update set since_ms = least(since_ms, excluded.since_ms)
"""
_KNOWN: Final = f"select {_NAMES}, since_ms from dimensions_seen where cluster = $cluster"  # noqa: S608
_FORGET: Final = "delete from dimensions_seen where cluster = $cluster"
_ALL: Final = f"""
insert into dimensions_seen ({_NAMES}, since_ms)
select {_NAMES}, min(since_ms) as since_ms
from settled_dimensions
where cluster = $cluster
group by all
"""  # noqa: S608

Combinations: TypeAlias = frozenset[tuple[object, ...]]


def of_workloads(
    connection: duckdb.DuckDBPyConnection, cluster: str, cut: Collection[str], *, since_ms: int
) -> Combinations:
    """
    The combinations of these workloads, each with since when there has been one of it.

    `since_ms`: only rows that count then or later are looked through.
    """
    asked = {"cluster": cluster, "cut": list(cut), "since_ms": since_ms}
    return frozenset(connection.execute(_OF_SOME, asked).fetchall())


def bring_up_to_date(
    connection: duckdb.DuckDBPyConnection,
    cluster: str,
    cut: Collection[str],
    *,
    had: Combinations,
    since_ms: int,
) -> None:
    """
    Take in what workloads have now that were written anew.

    Only where one of them was the first of a combination, and is no more, all others are looked through.

    Args:
        connection: in the transaction that wrote them.
        cluster: whose they are.
        cut: which workloads.
        had: the combinations that they had before.
        since_ms: only rows of them that count then or later are looked through.
    """
    lost = had - of_workloads(connection, cluster, cut, since_ms=since_ms)
    if lost and not lost.isdisjoint(connection.execute(_KNOWN, {"cluster": cluster}).fetchall()):
        recount(connection, cluster)
    else:
        connection.execute(_ADD, {"cluster": cluster, "cut": list(cut), "since_ms": since_ms})


def recount(connection: duckdb.DuckDBPyConnection, cluster: str) -> None:
    """Look through all workloads of a cluster."""
    connection.execute(_FORGET, {"cluster": cluster})
    connection.execute(_ALL, {"cluster": cluster})
