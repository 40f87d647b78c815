"""Which hours of activity have news: new samples in them, or stays of pods that look different now."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import duckdb

from domain.gpu_sample import LONGEST_STEP_MS
from store.engine import Engine
from store.lives import MARK
from store.open_until import FOREVER

# The longest that a sample stands, 1.5 of the longest step.
REACH_MS: Final = LONGEST_STEP_MS * 3 // 2
# The stays of all pods whose workloads were cut up to there are kept: whatever the settings of the stage are.
_STAYS: Final = "stays of activity"

# One row: up to which cut of lives stays are kept, which is the last, and since when rows of those between
# count.
_CUT: Final = """
with kept as (
    select coalesce(max(seq), -1) as seq from watermark
    where cluster = $cluster and job = $stays
)

select
    kept.seq as kept_seq,
    coalesce((select max(seq) from workload_cut where cluster = $cluster), -1) as cut_seq,
    (
        select min(open_until_ms) from workload_cut
        where cluster = $cluster and seq > (select seq from kept)
    ) as since_ms
from kept
"""

# One row: between which instants samples are new; null without one.
_NEW: Final = """
select min(at_ms) as first_ms, max(at_ms) as last_ms
from gpu_sample
where cluster = $cluster and seq > $seq
"""

# One row: for how long samples around the new ones stand at most.
_REACH: Final = """
select coalesce(max(step_ms), 0) * 3 // 2 as reach_ms
from gpu_sample
where cluster = $cluster and at_ms >= $first_ms - $longest_ms and at_ms <= $last_ms + $longest_ms
"""

# One row per hour, not closed yet, that is touched.
_HOURS: Final = """
with known as (
    select min(at_ms) as first_ms, max(at_ms) as last_ms
    from gpu_sample
),

news as (
    select distinct at_ms
    from gpu_sample
    where cluster = $cluster and seq > $seq
),

was as (
    select * from activity_holding
    where
        cluster = $cluster
        and ($kept_seq < 0 or workload_uid in (
            select workload_uid from workload_cut where cluster = $cluster and seq > $kept_seq
        ))
),

now as (
    select * from pod_stay
    where
        cluster = $cluster
        and open_until_ms >= $since_ms
        and ($kept_seq < 0 or workload_uid in (
            select workload_uid from workload_cut where cluster = $cluster and seq > $kept_seq
        ))
),

changed as (
    select
        case when was.pod_uid is null or now.pod_uid is null then coalesce(now.bound_ms, was.bound_ms)
            else least(was.released_ms, now.released_ms) end as from_ms,
        case when was.pod_uid is null or now.pod_uid is null then coalesce(now.released_ms, was.released_ms)
            when was.released_ms is null or now.released_ms is null then null
            else greatest(was.released_ms, now.released_ms) end as to_ms
    from was
    full outer join now
        on was.workload_uid = now.workload_uid
        and was.pod_uid = now.pod_uid
        and was.node = now.node
        and was.namespace = now.namespace
        and was.pod_name = now.pod_name
        and was.bound_ms = now.bound_ms
        and was.micro_gpus is not distinct from now.micro_gpus
    where
        was.pod_uid is null
        or now.pod_uid is null
        or was.released_ms is distinct from now.released_ms
),

stretch as (
    select at_ms - $reach_ms as from_ms, at_ms + $reach_ms as to_ms
    from news
    union all
    select
        greatest(changed.from_ms, known.first_ms) as from_ms,
        least(coalesce(changed.to_ms, known.last_ms), known.last_ms) + $longest_ms as to_ms
    from changed
    cross join known
    where changed.from_ms <= known.last_ms + $longest_ms
)

select distinct unnest(range(from_ms // 3600000, to_ms // 3600000 + 1)) * 3600000 as hour_ms
from stretch
where from_ms <= to_ms
"""

# One row per hour with samples: how many.
_SIZES: Final = """
select at_ms // 3600000 * 3600000 as hour_ms, count(*) as samples
from gpu_sample
where cluster = $cluster and at_ms >= $first_ms and at_ms < $last_ms + 3600000
group by at_ms // 3600000
"""

_KEEP: Final = (
    """
    delete from activity_holding
    where
        cluster = $cluster
        and ($kept_seq < 0 or workload_uid in (
            select workload_uid from workload_cut where cluster = $cluster and seq > $kept_seq
        ))
    """,
    """
    insert into activity_holding by name
    select * exclude (open_until_ms) from pod_stay
    where
        cluster = $cluster
        and open_until_ms >= $since_ms
        and ($kept_seq < 0 or workload_uid in (
            select workload_uid from workload_cut where cluster = $cluster and seq > $kept_seq
        ))
    """,
)


class Stays(NamedTuple):
    """
    Which workloads were cut since their pods' stays were kept: those above `kept_seq`, up to `cut_seq`.

    Rows of these count until `since_ms` at least. With a `kept_seq` below 0 none was kept: all are meant.
    """

    kept_seq: int
    cut_seq: int
    since_ms: int


def stays_of(engine: Engine, cluster: str) -> Stays:
    """Which stays may have changed."""
    (row,) = engine.rows(_CUT, {"cluster": cluster, "stays": _STAYS})
    kept_seq, since_ms = int(str(row["kept_seq"])), row["since_ms"]
    first_ms = 0 if kept_seq < 0 else since_ms if isinstance(since_ms, int) else FOREVER
    return Stays(kept_seq=kept_seq, cut_seq=int(str(row["cut_seq"])), since_ms=first_ms)


def touched_hours(
    engine: Engine, cluster: str, *, seq: int, closed_ms: int, stays: Stays
) -> list[tuple[int, int]]:
    """
    Hours that are to be folded anew, in order: when each begins, and how many samples it has.

    Args:
        engine: the store.
        cluster: whose samples.
        seq: of the last sample that was folded.
        closed_ms: hours before that are left out.
        stays: those that may have changed.
    """
    asked = {"cluster": cluster, "seq": seq, "longest_ms": REACH_MS, **_parameters(stays)}
    (new,) = engine.rows(_NEW, asked)
    reach_ms: object = 0
    if new["first_ms"] is not None:
        reach_ms = engine.rows(_REACH, asked | new)[0]["reach_ms"]
    found = engine.rows(_HOURS, asked | {"reach_ms": reach_ms})
    hours = sorted(hour for row in found if (hour := int(str(row["hour_ms"]))) >= closed_ms)
    if not hours:
        return []
    rows = engine.rows(_SIZES, {"cluster": cluster, "first_ms": hours[0], "last_ms": hours[-1]})
    sizes = {row["hour_ms"]: int(str(row["samples"])) for row in rows}
    return [(hour, sizes.get(hour, 0)) for hour in hours]


def keep_stays(connection: duckdb.DuckDBPyConnection, cluster: str, stays: Stays) -> None:
    """Remember the stays as they are laid under samples now."""
    for statement in _KEEP:
        connection.execute(statement, {"cluster": cluster, **_needed(statement, stays)})
    connection.execute(MARK, {"cluster": cluster, "job": _STAYS, "seq": stays.cut_seq})


def _parameters(stays: Stays) -> dict[str, object]:
    return {"kept_seq": stays.kept_seq, "since_ms": stays.since_ms}


def _needed(statement: str, stays: Stays) -> Mapping[str, object]:
    return {name: value for name, value in _parameters(stays).items() if f"${name}" in statement}
