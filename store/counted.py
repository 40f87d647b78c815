"""What counters had counted up to an instant: kept until something else is learnt of what counted by then."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import duckdb
import msgspec

from store.engine import Engine

_KEPT: Final = "select until_ms, body from counted where question = $question"
_ADD: Final = "insert or replace into counted (question, until_ms, body) values ($question, $until_ms, $body)"
_UNTIL: Final = "select max(until_ms) from counted"
_DROP: Final = "delete from counted"
# All that a counter may tell of these workloads: their first waits and evictions, and whom they preempted.
# What counts from until_ms on is no part of it, nor what a workload is that counts only then.
_TOLD: Final = """
with evicted as (
    select
        cluster,
        workload_uid,
        list(
            (at_ms, preempted, reason, mechanism, missed, preemptor_uid)
            order by at_ms, preempted, reason, mechanism, missed, preemptor_uid
        )::varchar as evictions
    from eviction
    where
        cluster = $cluster
        and workload_uid = any($cut::varchar[])
        and open_until_ms >= $since_ms
        and at_ms < $until_ms
    group by cluster, workload_uid
)

select
    workload.workload_uid,
    case when workload.first_placed_ms < $until_ms then workload.first_placed_ms end as placed_ms,
    case when workload.first_placed_ms < $until_ms then workload.first_wait_ms end as wait_ms,
    case when workload.first_placed_ms < $until_ms then workload.gpu_model end as model,
    evicted.evictions,
    workload.team,
    workload.queue,
    workload.priority_class,
    workload.service_class,
    workload.gang_size,
    workload.requested_micro_gpus,
    workload.skewed,
    workload.is_copy
from workload
left join evicted
    on workload.cluster = evicted.cluster and workload.workload_uid = evicted.workload_uid
where
    workload.cluster = $cluster
    and workload.workload_uid = any($cut::varchar[])
    and workload.open_until_ms >= $since_ms
    and (workload.first_placed_ms < $until_ms or evicted.evictions is not null)
"""
_PREEMPTORS: Final = """
select member.object_uid, member.workload_uid, workload.service_class
from member
inner join workload
    on member.cluster = workload.cluster
    and member.workload_uid = workload.workload_uid
    and member.open_until_ms = workload.open_until_ms
where
    member.cluster = $cluster
    and member.workload_uid = any($cut::varchar[])
    and member.open_until_ms >= $since_ms
    and member.object_uid in (
        select eviction.preemptor_uid from eviction
        where eviction.cluster = $cluster and eviction.preempted and eviction.at_ms < $until_ms
    )
"""

Row: TypeAlias = Mapping[str, object]
# How often each stands there.
Told: TypeAlias = Counter[tuple[object, ...]]


class Counted(NamedTuple):
    """The rows of a question as of an instant."""

    until_ms: int
    rows: Sequence[Row]


def kept(engine: Engine, question: str) -> Counted | None:
    """What is kept of a question, named by its text."""
    for row in engine.kept_rows(_KEPT, {"question": _digest(question)}):
        return Counted(int(str(row["until_ms"])), msgspec.json.decode(str(row["body"])))
    return None


def keep(engine: Engine, make: Callable[[], Iterable[tuple[str, Counted]]]) -> int:
    """
    Keep what `make` counts, by the text of the question; gives how many.

    Nobody writes meanwhile, so that what it reads is what holds when it is kept.
    """
    with engine.transaction() as connection:
        found = list(make())
        for question, counted in found:
            body = msgspec.json.encode(counted.rows).decode()
            asked = {"question": _digest(question), "until_ms": counted.until_ms, "body": body}
            connection.execute(_ADD, asked)
    return len(found)


def told_of(
    connection: duckdb.DuckDBPyConnection, cluster: str, cut: Collection[str], *, since_ms: int
) -> Told:
    """
    What counters have kept of these workloads; nothing where nothing is kept.

    `since_ms`: only rows that count then or later are looked through.
    """
    (until_ms,) = connection.execute(_UNTIL).fetchone() or (None,)
    if until_ms is None or not cut:
        return Counter()
    asked = {"cluster": cluster, "cut": list(cut), "since_ms": since_ms, "until_ms": until_ms}
    return Counter(row for sql in (_TOLD, _PREEMPTORS) for row in connection.execute(sql, asked).fetchall())


def drop_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what is kept: it is counted anew."""
    connection.execute(_DROP)


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()
