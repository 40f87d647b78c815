"""Activity: samples and stays of pods, folded into hours of devices and stretches of one level."""

from collections.abc import Iterator, Mapping
from typing import Final

import duckdb

from store.engine import Engine
from store.lives import MARK
from store.retention import closed_until
from store.touched_hours import REACH_MS, keep_stays, stays_of, touched_hours

HOUR_MS: Final = 3_600_000
# A fold holds about so many samples in memory at once.
_AT_ONCE: Final = 1_500_000
# One row: which samples are in the result, which there are, and the number of this refresh.
_DONE: Final = """
select
    coalesce((select seq from watermark where cluster = $cluster and job = $job), 0) as seq,
    coalesce((select max(seq) from gpu_sample where cluster = $cluster), 0) as newest,
    coalesce((select max(seq) from activity_cut where cluster = $cluster), 0) + 1 as refresh
"""

# What both results are made of, in the steps of the schema; a reading stands for 45 minutes at most.
_FRESH_PIECES: Final = (
    """
    create or replace temp table fresh_series as
    select * from gpu_series($from_ms - 2700000, $known_ms) where cluster = $cluster
    """,
    "create or replace temp table fresh_part as from gpu_part('fresh_series', $from_ms - 2700000)",
    """
    create or replace temp table fresh_piece as
    with fresh_reading as (
        select * from gpu_reading('fresh_series', $from_ms - 2700000, $known_ms)
    )
    select * from gpu_piece('fresh_series', 'fresh_part', 'fresh_reading')
    """,
)
_FRESH_SPANS: Final = """
-- One row per device of a pod and stretch of one level within an hour.
create or replace temp table fresh_span as
with piece as (
    select
        part.part_no,
        part.pod_no,
        part.device_no,
        greatest(piece.start_ms, $from_ms) as start_ms,
        least(piece.end_ms, $to_ms) as end_ms,
        piece.micro_gpus * 4 + case
            when not piece.own then 0
            when piece.activity >= $idle_below then 1
            when piece.memory_ratio > $resident_above then 2
            else 3
        end as kind
    from fresh_piece as piece
    inner join fresh_part as part on piece.part_no = part.part_no
    where
        part.pod_uid != '' and piece.activity is not null
        and piece.start_ms < $to_ms and piece.end_ms > $from_ms
),

hourly as (
    select * replace (least(end_ms, (start_ms // 3600000 + 1) * 3600000) as end_ms)
    from piece
    union all
    select * replace (end_ms // 3600000 * 3600000 as start_ms)
    from piece
    where end_ms // 3600000 > start_ms // 3600000 and end_ms % 3600000 > 0
),

marked as (
    select
        *,
        start_ms % 3600000 = 0
        or lag(end_ms) over of_device is distinct from start_ms
        or lag(kind) over of_device is distinct from kind as begins,
        end_ms % 3600000 = 0
        or lead(start_ms) over of_device is distinct from end_ms
        or lead(kind) over of_device is distinct from kind as ends
    from hourly
    window of_device as (partition by pod_no, device_no order by start_ms, end_ms)
),

edge as (
    select
        *,
        case when ends then end_ms else lead(end_ms) over of_device end as until_ms
    from marked
    where begins or ends
    window of_device as (partition by pod_no, device_no order by start_ms, end_ms)
)

select
    $cluster as cluster,
    part.workload_uid,
    part.pod_uid,
    series.device,
    edge.kind // 4 as micro_gpus,
    edge.start_ms,
    edge.until_ms as end_ms,
    ['shared', 'high', 'resident', 'low'][edge.kind % 4 + 1] as level
from edge
inner join fresh_part as part on edge.part_no = part.part_no
inner join fresh_series as series on part.series_no = series.series_no
where edge.begins
"""
_FRESH_HOURS: Final = """
create or replace temp table fresh_hour as
select * from gpu_sum('fresh_series', 'fresh_part', 'fresh_piece', $from_ms, $to_ms)
"""
_STALE: Final = """
-- One row per workload with a stretch that is only in one of the two.
create or replace temp table stale_workload as
with both_sides as (
    select *, 1 as side
    from activity_span
    where cluster = $cluster and start_ms >= $from_ms and start_ms < $to_ms
    union all
    select *, -1 as side
    from fresh_span
)

select distinct workload_uid
from (select * exclude (side), sum(side) as difference from both_sides group by all) as compared
where difference != 0
"""
_REPLACE: Final = (
    """
    delete from activity_span
    where cluster = $cluster and start_ms >= $from_ms and start_ms < $to_ms
    """,
    "insert into activity_span select * from fresh_span",
    "delete from gpu_hour where cluster = $cluster and hour_ms >= $from_ms and hour_ms < $to_ms",
    "insert into gpu_hour select * from fresh_hour",
    """
    insert into activity_cut (cluster, workload_uid, seq)
    select $cluster, workload_uid, $refresh from stale_workload
    on conflict do update set seq = excluded.seq
    """,
    "drop table fresh_piece",
)
_FORGET: Final = "delete from watermark where cluster = $cluster and starts_with(job, $stage)"


def fold(engine: Engine, cluster: str, *, job: str, idle_below: float, resident_above: float) -> int:
    """
    Bring hours and stretches of activity up to date with samples and stays of pods.

    Only hours that something new touches are folded, whole, from all their samples, so the result does
    not depend on the order of arrival. The watermark is set after the last of them; a stop before
    repeats work and loses none.

    Args:
        engine: the store.
        cluster: to bring up to date.
        job: the name of the watermark, of which other settings have another; theirs are forgotten.
        idle_below: activity under this share is low.
        resident_above: low with more than this share of the memory in use is resident.

    Returns:
        How many workloads have another activity now.
    """
    (done,) = engine.rows(_DONE, {"cluster": cluster, "job": job})
    if not done["newest"]:
        return 0
    closed_ms = closed_until(engine, cluster)
    stays = stays_of(engine, cluster)
    touched = touched_hours(engine, cluster, seq=int(str(done["seq"])), closed_ms=closed_ms, stays=stays)
    if not touched:
        return 0
    about = {"cluster": cluster, "refresh": done["refresh"]}
    limits = {"idle_below": idle_below, "resident_above": resident_above}
    made_anew: set[str] = set()
    for from_ms, to_ms in _runs(touched):
        run = about | {"from_ms": from_ms, "to_ms": to_ms}
        with engine.transaction(changes_lives=False) as connection:
            for statement in _FRESH_PIECES:
                _execute(connection, statement, run | {"known_ms": to_ms + REACH_MS})
            _execute(connection, _FRESH_SPANS, run | limits)
            _execute(connection, _FRESH_HOURS, run)
            _execute(connection, _STALE, run)
            made_anew |= {uid for (uid,) in connection.execute("select * from stale_workload").fetchall()}
            for statement in _REPLACE:
                _execute(connection, statement, run)
    with engine.transaction(changes_lives=False) as connection:
        keep_stays(connection, cluster, stays)
        connection.execute(_FORGET, {"cluster": cluster, "stage": job.partition("/")[0] + "/"})
        connection.execute(MARK, {"cluster": cluster, "job": job, "seq": done["newest"]})
    return len(made_anew)


def _runs(hours: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Hours next to each other, as [from, to), with no more samples than a fold holds at once."""
    start_ms: int | None = None
    end_ms = held = 0
    for hour_ms, samples in hours:
        if start_ms is not None and (hour_ms != end_ms or held + samples > _AT_ONCE):
            yield start_ms, end_ms
            start_ms, held = None, 0
        if start_ms is None:
            start_ms = hour_ms
        end_ms, held = hour_ms + HOUR_MS, held + samples
    if start_ms is not None:
        yield start_ms, end_ms


def _execute(connection: duckdb.DuckDBPyConnection, sql: str, given: Mapping[str, object]) -> None:
    """Run a statement with those of the parameters that it names."""
    (statement,) = connection.extract_statements(sql)
    connection.execute(statement, {name: given[name] for name in statement.named_parameters if name in given})
