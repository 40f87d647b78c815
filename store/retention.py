"""Retention: what is older than it need be kept is dropped, facts and all that was derived of them."""

from typing import Final

from store import alerts, counted, dimensions, held_days
from store.engine import Engine
from store.lives import OF_WORKLOADS

# One row per workload that ended before then.
_ENDED: Final = """
create or replace temp table ended_workload as
select workload_uid from workload where cluster = $cluster and ended_ms < $before_ms
"""
# One row per object of those.
_OLD: Final = """
create or replace temp table old_member as
select object_uid from member
where cluster = $cluster and workload_uid in (select workload_uid from ended_workload)
"""
_OF_OBJECTS: Final = (
    "delete from transition where cluster = $cluster and uid in (select object_uid from old_member)",
    "delete from description where cluster = $cluster and uid in (select object_uid from old_member)",
    """
    delete from object_state
    where cluster = $cluster and gone_ms is not null and uid in (select object_uid from old_member)
    """,
)
# What stages derived of a workload. `activity_cut` stays: its numbers go on from the highest one.
_OF_STAGES: Final = tuple(
    f"delete from {table} where cluster = $cluster"  # noqa: S608 (names from here)
    " and workload_uid in (select workload_uid from ended_workload)"
    for table in (
        "workload_cut",
        "activity_span",
        "activity_holding",
        "gpu_hour",
        "waste_piece",
        "own_failure_wait",
        "waste_account",
        "demand_step",
        "wait_reason",
        "eta_told",
    )
)
# A sample stands for less than an hour, so the first open hour needs those of the hour before.
_BY_TIME: Final = (
    "delete from event_sighting where cluster = $cluster and observed_ms < $before_ms",
    """
    delete from object_state
    where cluster = $cluster and kind in ('Event', 'Checkpoint') and seen_ms < $before_ms
    """,
    "delete from transition where cluster = $cluster and kind = 'GPU' and at_ms < $before_ms",
    "delete from denial where cluster = $cluster and at_ms < $before_ms",
    "delete from set_aside where cluster = $cluster and observed_ms < $before_ms",
    # What a position was before is dropped with it; the newest one that still holds stays, however old it is.
    """
    delete from queue_position as old
    where
        cluster = $cluster
        and at_ms < $before_ms
        and (ahead is null or exists (
            select 1 from queue_position as later
            where
                later.cluster = old.cluster and later.namespace = old.namespace and later.name = old.name
                and later.at_ms > old.at_ms and later.at_ms < $before_ms
        ))
    """,
    "delete from queue_state where cluster = $cluster and end_ms < $before_ms",
    "delete from gpu_sample where cluster = $cluster and at_ms < $before_ms - 3600000",
    "delete from gpu_hour where cluster = $cluster and hour_ms < $before_ms - 3600000 and workload_uid = ''",
    "delete from share_span where cluster = $cluster and until_ms < $before_ms",
    "delete from team_share_span where cluster = $cluster and until_ms < $before_ms",
    "delete from pool_span where cluster = $cluster and until_ms < $before_ms",
    """
    insert into closed_until (cluster, until_ms) values ($cluster, $before_ms)
    on conflict do update set until_ms = greatest(until_ms, excluded.until_ms)
    """,
)
_CUT: Final = "select workload_uid from ended_workload"
_MEASURED: Final = "delete from measurement where as_of_ms < $before_ms"
_CLOSED: Final = "select until_ms from closed_until where cluster = $cluster"
_DROPPED: Final = "select coalesce(max(until_ms), 0) as until_ms from closed_until"


def drop_before(engine: Engine, clusters: list[str], before_ms: int) -> int:
    """
    Drop workloads that ended before an instant, and what was sampled, counted, said and alerted before.

    An object that is still there keeps its newest state, so that it is not taken for a new one. What
    was derived for the time before is closed: see `closed_until`. Proposals and their audit stay.

    Returns:
        How many workloads were dropped.
    """
    dropped = 0
    for cluster in clusters:
        with engine.transaction() as connection:
            connection.execute(_ENDED, {"cluster": cluster, "before_ms": before_ms})
            connection.execute(_OLD, {"cluster": cluster})
            cut = [uid for (uid,) in connection.execute(_CUT).fetchall()]
            for delete in (*_OF_OBJECTS, *_OF_STAGES):
                connection.execute(delete, {"cluster": cluster})
            for delete in OF_WORKLOADS.values():
                connection.execute(delete, {"cluster": cluster, "cut": cut, "since_ms": 0})
            dimensions.recount(connection, cluster)
            counted.drop_all(connection)
            for statement in _BY_TIME:
                connection.execute(statement, {"cluster": cluster, "before_ms": before_ms})
            dropped += len(cut)
    with engine.transaction() as connection:
        connection.execute(_MEASURED, {"before_ms": before_ms})
        held_days.drop_all(connection, before_ms=before_ms)
    alerts.drop_before(engine, before_ms)
    return dropped


def closed_until(engine: Engine, cluster: str) -> int:
    """
    The instant before which nothing is derived anew, for part of what it rests on was dropped.

    0 where nothing was.
    """
    rows = engine.rows(_CLOSED, {"cluster": cluster})
    return int(str(rows[0]["until_ms"])) if rows else 0


def dropped_until(engine: Engine) -> int:
    """The instant before which facts of some cluster were dropped; 0 where nothing was."""
    [row] = engine.rows(_DROPPED)
    return int(str(row["until_ms"]))
