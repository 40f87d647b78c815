"""Kueue's own order of its queues: asked again and again, kept with its age, shown beside ours."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from api.answers import Record
from collector.kube.client import Connection
from collector.visibility import Untold, pending_in, version_of
from domain.window import MS_PER_SECOND, Clock, format_instant
from domain.workload import State
from service.features import QUEUE_POSITIONS
from store.embedded import Store
from store.positions import Place

EVERY_SECONDS: Final = 30
_NEVER_ASKED: Final = "Kueue was not asked for the order: no cluster of this name is watched"
_NOT_LISTED: Final = "Kueue did not list it: it came later, or stands behind the first 1,000"

# One row per ClusterQueue that is there.
_QUEUES: Final = """
select name from object_state
where cluster = $cluster and kind = 'ClusterQueue' and gone_ms is null
order by name
"""
# One row: the position that was told last before $as_of_ms.
_TOLD: Final = """
select queue_position.ahead, queue_position.ahead_in_local_queue
from queue_position
inner join object_state
    on queue_position.cluster = object_state.cluster
    and queue_position.namespace = object_state.namespace
    and queue_position.name = object_state.name
where
    object_state.cluster = $cluster
    and object_state.uid = $uid
    and object_state.kind = 'Workload'
    and queue_position.at_ms <= $as_of_ms
order by queue_position.at_ms desc, queue_position.rowid desc
limit 1
"""
# One row: how many wait in the same queue for quota and come before it, by priority and then by time.
_OURS: Final = """
with described as (
    select
        uid,
        arg_max(coalesce((body::json ->> 'priority')::bigint, 0), from_ms) as priority
    from description
    where cluster = $cluster and kind = 'Workload' and observed_ms < $as_of_ms
    group by uid
),

waiting as (
    select workload.workload_uid, workload.submitted_ms, coalesce(described.priority, 0) as priority
    from workload
    inner join span
        on workload.cluster = span.cluster and workload.workload_uid = span.workload_uid
    left join described on workload.workload_uid = described.uid
    where
        workload.cluster = $cluster
        and workload.queue = $queue
        and span.state = 'queued'
        and span.start_ms < $as_of_ms
        and coalesce(span.end_ms >= $as_of_ms, true)
)

select count(*) as ahead
from waiting
inner join waiting as own on own.workload_uid = $uid
where
    (waiting.priority > own.priority)
    or (
        waiting.priority = own.priority
        and (waiting.submitted_ms, waiting.workload_uid) < (own.submitted_ms, own.workload_uid)
    )
"""


class Positions:
    """Asks one cluster for the order in its queues, and keeps what changed."""

    def __init__(self, cluster: str, connection: Connection, store: Store, clock: Clock) -> None:
        self._cluster = cluster
        self._connection = connection
        self._store = store
        self._clock = clock

    def poll(self) -> None:
        """Ask for every queue; where one is not told, all of them keep the age that they had."""
        at_ms = self._clock.now_ms()
        try:
            told = self._told()
        except Untold as why:
            self._store.keep_positions(self._cluster, (), seen_ms=0, error=str(why))
            return
        # Asked of the store each time: it may have been restored meanwhile.
        known = {(one.namespace, one.name): one for one in self._store.positions(self._cluster)}
        changes = [place for key, place in told.items() if known.get(key) != place]
        changes += [
            place._replace(ahead=None, ahead_in_local_queue=None)
            for key, place in known.items()
            if key not in told
        ]
        self._store.keep_positions(self._cluster, changes, seen_ms=at_ms, error="")

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _told(self) -> dict[tuple[str, str], Place]:
        version = version_of(self._connection)
        told: dict[tuple[str, str], Place] = {}
        for row in self._store.rows(_QUEUES, {"cluster": self._cluster}):
            queue = str(row["name"])
            for one in pending_in(self._connection, version, queue):
                place = Place(
                    queue=queue,
                    namespace=one.metadata.namespace,
                    name=one.metadata.name,
                    ahead=one.position_in_cluster_queue,
                    ahead_in_local_queue=one.position_in_local_queue,
                )
                told[place.namespace, place.name] = place
        return told


def marks(store: Store, as_of_ms: int) -> list[dict[str, Any]]:
    """How far positions were asked at an instant, as marks of one kind; see `service.sources`."""
    return [
        {
            "cluster": row["cluster"],
            "kind": QUEUE_POSITIONS,
            "source": "",
            "seen_ms": min(int(str(row["seen_ms"])), as_of_ms),
            "epoch": 0,
            "restarts": 0,
            "last_error": row["error"],
        }
        for row in store.position_marks()
    ]


def of_workload(store: Store, row: Mapping[str, Any], as_of_ms: int) -> Record | None:
    """
    Kueue's position of a workload beside ours; None for one that does not wait in a queue of Kueue.

    Args:
        store: has both.
        row: of the workload: cluster, uid, queue and state.
        as_of_ms: when it waits.
    """
    if row["state"] != State.QUEUED or not row["queue"]:
        return None
    place = {"cluster": row["cluster"], "uid": row["uid"], "as_of_ms": as_of_ms}
    ours: Sequence[Mapping[str, Any]] = store.rows(_OURS, place | {"queue": row["queue"]})
    asked = [mark for mark in marks(store, as_of_ms) if mark["cluster"] == row["cluster"]]
    seen_ms, because = (asked[0]["seen_ms"], asked[0]["last_error"]) if asked else (0, _NEVER_ASKED)
    told: Sequence[Mapping[str, Any]] = store.rows(_TOLD, place)
    known = told[0] if seen_ms and told else {"ahead": None, "ahead_in_local_queue": None}
    if known["ahead"] is None:
        because = because or _NOT_LISTED
    return {
        "ahead": known["ahead"],
        "ahead_in_local_queue": known["ahead_in_local_queue"],
        "told_at": format_instant(seen_ms) if seen_ms else None,
        "age_seconds": (as_of_ms - seen_ms) / MS_PER_SECOND if seen_ms else None,
        "because": because,
        "ahead_by_our_order": ours[0]["ahead"],
    }
