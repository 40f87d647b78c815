"""Days of which it was added up who held what: kept until something is learnt about a pod of the day."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

import duckdb

from store.engine import Engine
from store.open_until import FOREVER

_KEPT: Final = """
select start_ms, end_ms, digest, body
from held_day
where start_ms >= $start_ms and end_ms <= $end_ms
order by start_ms
"""
_DROP: Final = "delete from held_day where start_ms = any($starts::bigint[])"
_ADD: Final = """
insert into held_day (start_ms, end_ms, digest, body) values ($start_ms, $end_ms, $digest, $body)
"""
_DAYS: Final = "select start_ms, end_ms from held_day"
# One row per stay of a pod of these workloads, with all that a day's sums tell of it.
_STAYS: Final = """
select
    holding.pod_uid,
    holding.node,
    holding.gpu_model,
    holding.micro_gpus,
    holding.bound_ms,
    workload.team,
    workload.project,
    workload.user_name,
    workload.queue,
    workload.skewed,
    holding.released_ms
from holding
inner join workload
    on holding.cluster = workload.cluster
    and holding.workload_uid = workload.workload_uid
    and holding.open_until_ms = workload.open_until_ms
where
    holding.cluster = $cluster
    and holding.workload_uid = any($cut::varchar[])
    and holding.open_until_ms >= $since_ms
    and holding.bound_ms < $until_ms
"""
# How often each stands there.
Stays: TypeAlias = Counter[tuple[object, ...]]


class HeldDay(NamedTuple):
    """A day, what its sums were cut by, and the sums."""

    start_ms: int
    end_ms: int
    digest: str
    body: bytes


def kept(engine: Engine, *, start_ms: int, end_ms: int) -> list[HeldDay]:
    """The days that are kept of a window, in order."""
    return [HeldDay(**row) for row in engine.rows(_KEPT, {"start_ms": start_ms, "end_ms": end_ms})]  # type: ignore[arg-type]


def keep(engine: Engine, make: Callable[[], Iterable[HeldDay]]) -> int:
    """
    Keep days that `make` adds up, in the place of what was kept of them; gives how many.

    Nobody writes meanwhile, so that what it reads is what holds when they are kept.
    """
    with engine.transaction() as connection:
        days = list(make())
        if days:
            connection.execute(_DROP, {"starts": [day.start_ms for day in days]})
        for day in days:
            connection.execute(_ADD, day._asdict())
    return len(days)


def stays_of(
    connection: duckdb.DuckDBPyConnection, cluster: str, cut: Collection[str], *, since_ms: int
) -> Stays:
    """
    The stays of these workloads' pods that touch a day that is kept, or none where none is kept.

    `since_ms`: only rows that count then or later are looked through.
    """
    days = connection.execute(_DAYS).fetchall()
    if not days or not cut:
        return Counter()
    asked = {
        "cluster": cluster,
        "cut": list(cut),
        "since_ms": since_ms,
        "until_ms": max(end_ms for _, end_ms in days),
    }
    return Counter(connection.execute(_STAYS, asked).fetchall())


def drop_touched(connection: duckdb.DuckDBPyConnection, *, had: Stays, have: Stays) -> None:
    """Drop the days in which these stays differ: what was known of them, and what is known now."""
    if had == have:
        return
    changes = list(_changes(had, have))
    touched = [
        start_ms
        for start_ms, end_ms in connection.execute(_DAYS).fetchall()
        if any(from_ms < end_ms and until_ms > start_ms for from_ms, until_ms in changes)
    ]
    connection.execute(_DROP, {"starts": touched})


def drop_all(connection: duckdb.DuckDBPyConnection, *, before_ms: int = FOREVER) -> None:
    """Drop the days that begin before an instant, by default all."""
    connection.execute("delete from held_day where start_ms < $before_ms", {"before_ms": before_ms})


def _changes(had: Stays, have: Stays) -> Iterator[tuple[int, int]]:
    """From when until when something is not as it was known; of a stay that only ends otherwise, its end."""
    ends: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
    for side, rows in enumerate((had - have, have - had)):
        for row in rows.elements():
            released_ms = row[-1]
            until_ms = released_ms if isinstance(released_ms, int) else FOREVER
            ends.setdefault(row[:-1], ([], []))[side].append(until_ms)
    for same, (before, after) in ends.items():
        bound_ms, all_ms = int(str(same[4])), before + after
        yield min(all_ms) if len(before) == len(after) == 1 else bound_ms, max(all_ms)
