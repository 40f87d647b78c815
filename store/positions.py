"""Positions in Kueue's queues: changes are appended, and how far they were asked is noted."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from store.engine import Engine

_MARK: Final = """
insert into queue_position_mark by name
select $cluster as cluster, $seen_ms as seen_ms, $error as error
on conflict do update set seen_ms = greatest(seen_ms, excluded.seen_ms), error = excluded.error
"""
# One row per workload that has a position now.
_NOW: Final = """
select queue, namespace, name, ahead, ahead_in_local_queue
from (
    select queue_position.*
    from queue_position
    where cluster = $cluster
    qualify row_number() over (partition by namespace, name order by at_ms desc, rowid desc) = 1
)
where ahead is not null
order by queue, ahead
"""
_MARKS: Final = "select cluster, seen_ms, error from queue_position_mark order by cluster"


class Place(NamedTuple):
    """Where a workload stands: how many are ahead of it. None: it is not told any more."""

    queue: str
    namespace: str
    name: str
    ahead: int | None
    ahead_in_local_queue: int | None


def keep(engine: Engine, cluster: str, changes: Sequence[Place], *, seen_ms: int, error: str) -> None:
    """Append what changed, and note until when all is known; 0 leaves that as it is."""
    rows = [change._asdict() | {"cluster": cluster, "at_ms": seen_ms} for change in changes]
    with engine.transaction(changes_lives=False) as connection:
        if rows:
            incoming = pa.Table.from_pylist(rows, schema=engine.schema("queue_position"))
            connection.from_arrow(incoming).insert_into("queue_position")
        connection.execute(_MARK, {"cluster": cluster, "seen_ms": seen_ms, "error": error})


def now(engine: Engine, cluster: str) -> list[Place]:
    """The positions that are known last."""
    return [Place(**row) for row in engine.rows(_NOW, {"cluster": cluster})]  # type: ignore[arg-type]


def marks(engine: Engine) -> list[dict[str, object]]:
    """Until when the positions of each cluster are known, and what hinders."""
    return [dict(mark) for mark in engine.kept_rows(_MARKS)]
