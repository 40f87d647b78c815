"""Kueue's own order of its queues: asked again and again, kept with its age, shown beside ours."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from api.answers import Record
from collector.kube.client import Connection
from collector.visibility import Pending, Refused, Untold, pending_in, pending_in_local, version_of
from domain.facts import ObjectKind
from domain.window import MS_PER_SECOND, Clock, format_instant
from domain.workload import State
from service.features import QUEUE_POSITIONS
from store.embedded import Store
from store.positions import Place

EVERY_SECONDS: Final = 30
_NEVER_ASKED: Final = "Kueue was not asked for the order: no cluster of this name is watched"
_NOT_LISTED: Final = "Kueue did not list it: it came later, or stands behind the first 1,000"
# Queues that an error names.
_NAMED: Final = 3

# One row per ClusterQueue that is there.
_QUEUES: Final = """
select name from object_state
where cluster = $cluster and kind = 'ClusterQueue' and gone_ms is null
order by name
"""
# One row per LocalQueue that is there, with the ClusterQueue that it leads to.
_LOCAL_QUEUES: Final = """
select
    object_state.namespace,
    object_state.name,
    arg_max(description.body::json ->> 'cluster_queue', description.from_ms) as cluster_queue
from object_state
inner join description
    on object_state.cluster = description.cluster and object_state.uid = description.uid
where
    object_state.cluster = $cluster
    and object_state.kind = 'LocalQueue'
    and object_state.gone_ms is null
group by object_state.namespace, object_state.name
order by object_state.namespace, object_state.name
"""
# One row per Workload of Kueue, or of one: the position that was told last before $as_of_ms.
_TOLD: Final = """
select object_state.cluster, object_state.uid, queue_position.ahead, queue_position.ahead_in_local_queue
from queue_position
inner join object_state
    on queue_position.cluster = object_state.cluster
    and queue_position.namespace = object_state.namespace
    and queue_position.name = object_state.name
where
    object_state.kind = 'Workload'
    and queue_position.at_ms <= $as_of_ms
    and ($uid is null or object_state.uid = $uid)
qualify
    row_number() over (
        partition by object_state.cluster, object_state.uid
        order by queue_position.at_ms desc, queue_position.rowid desc
    ) = 1
"""
# One row per workload that waits in a queue for quota: how many of the queue come before it, by priority
# and then by time. What came through a queue that somebody stopped stands in no line.
_OURS: Final = """
with described as (
    select
        cluster,
        uid,
        arg_max(coalesce((body::json ->> 'priority')::bigint, 0), from_ms) as priority,
        arg_max(body::json ->> 'local_queue', from_ms) as local_queue
    from description
    where kind = 'Workload' and observed_ms < $as_of_ms
    group by cluster, uid
),

stopped as (
    select object_state.cluster, object_state.kind, object_state.namespace, object_state.name
    from object_state
    inner join description
        on object_state.cluster = description.cluster and object_state.uid = description.uid
    where
        object_state.kind in ('ClusterQueue', 'LocalQueue')
        and coalesce(object_state.gone_ms >= $as_of_ms, true)
        and description.from_ms < $as_of_ms
    group by object_state.cluster, object_state.kind, object_state.namespace, object_state.name
    having arg_max(description.body::json ->> 'stop_policy', description.from_ms) not in ('', 'None')
)

select
    workload.cluster,
    workload.workload_uid as uid,
    row_number() over (
        partition by workload.cluster, workload.queue
        order by coalesce(described.priority, 0) desc, workload.submitted_ms, workload.workload_uid
    ) - 1 as ahead
from workload
inner join span
    on workload.cluster = span.cluster and workload.workload_uid = span.workload_uid
left join described
    on workload.cluster = described.cluster and workload.workload_uid = described.uid
anti join stopped as door
    on
        workload.cluster = door.cluster
        and workload.namespace = door.namespace
        and described.local_queue = door.name
        and door.kind = 'LocalQueue'
anti join stopped as line
    on workload.cluster = line.cluster and workload.queue = line.name and line.kind = 'ClusterQueue'
where
    workload.queue != ''
    and ($queue is null or workload.queue = $queue)
    and span.state = 'queued'
    and span.start_ms < $as_of_ms
    and coalesce(span.end_ms >= $as_of_ms, true)
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
            told, error = self._told()
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
        self._store.keep_positions(self._cluster, changes, seen_ms=at_ms, error=error)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _told(self) -> tuple[dict[tuple[str, str], Place], str]:
        """
        Every place that is told, and what of the order may not be asked for.

        A ClusterQueue that may not be asked for is asked for by its LocalQueues: an account may have a
        Role in some namespaces only.
        """
        version = version_of(self._connection)
        told: dict[tuple[str, str], Place] = {}
        closed: dict[str, Refused] = {}
        queues = [str(row["name"]) for row in self._store.rows(_QUEUES, {"cluster": self._cluster})]
        for queue in queues:
            try:
                told |= _places(queue, pending_in(self._connection, version, queue))
            except Refused as why:
                closed[queue] = why
        asked = len(queues) - len(closed)
        refused: dict[str, Refused] = {}
        for row in self._local_queues(queues, closed):
            queue, namespace, name = (str(row[key]) for key in ("cluster_queue", "namespace", "name"))
            closed.pop(queue, None)
            try:
                pending = pending_in_local(self._connection, version, namespace, name)
            except Refused as why:
                refused[f"{namespace}/{name}"] = why
                continue
            told |= _places(queue, pending)
            asked += 1
        refused |= {f"ClusterQueue {queue}": why for queue, why in closed.items()}
        if not refused:
            return told, ""
        names, first = list(refused), next(iter(refused.values()))
        if not asked:
            raise first
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return told, f"{first}; not told of {', '.join(names[:_NAMED])}{more}"

    def _local_queues(self, queues: Collection[str], closed: Collection[str]) -> list[Mapping[str, Any]]:
        """Those that lead to a ClusterQueue that may not be asked for, or not even be read."""
        rows = self._store.rows(_LOCAL_QUEUES, {"cluster": self._cluster})
        return [row for row in rows if row["cluster_queue"] in closed or (not queues and self._is_blind())]

    def _is_blind(self) -> bool:
        """Whether ClusterQueues were never read."""
        return not any(
            mark["seen_ms"]
            for mark in self._store.marks()
            if mark["cluster"] == self._cluster and mark["kind"] == ObjectKind.CLUSTER_QUEUE
        )


def _places(queue: str, pending: Iterable[Pending]) -> dict[tuple[str, str], Place]:
    return {
        (one.metadata.namespace, one.metadata.name): Place(
            queue=queue,
            namespace=one.metadata.namespace,
            name=one.metadata.name,
            ahead=one.position_in_cluster_queue,
            ahead_in_local_queue=one.position_in_local_queue,
        )
        for one in pending
    }


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


class Order:
    """
    Who comes before whom at an instant, by Kueue and by us.

    Args:
        store: has both.
        as_of_ms: when they wait.
        uid: the workload that is asked for, and `queue` its queue; without them all are known.
        ours: how many come before it by us, where the caller has counted them.
    """

    def __init__(
        self,
        store: Store,
        as_of_ms: int,
        *,
        uid: str | None = None,
        queue: str | None = None,
        ours: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    ) -> None:
        asked = {"as_of_ms": as_of_ms}
        self._as_of_ms = as_of_ms
        self._marks = {mark["cluster"]: mark for mark in marks(store, as_of_ms)}
        # Where nobody was ever asked for positions, none were told.
        self._told = _by_workload(store.rows(_TOLD, asked | {"uid": uid})) if self._marks else {}
        if ours is None:
            ours = _by_workload(store.rows(_OURS, asked | {"queue": queue}))
        self._ours = ours

    def uids(self) -> list[str]:
        """The workloads that wait in a queue for quota."""
        return [uid for _, uid in self._ours]

    def place(self, row: Mapping[str, Any]) -> Record | None:
        """
        Kueue's position of a workload, with its age or why there is none, beside ours.

        None for one that does not wait in a queue for quota; `row` has its cluster, uid, queue and state.
        """
        cluster, uid = row["cluster"], row["uid"]
        ours = self._ours.get((cluster, uid))
        if row["state"] != State.QUEUED or ours is None:
            return None
        mark = self._marks.get(cluster)
        seen_ms, because = (0, _NEVER_ASKED) if mark is None else (mark["seen_ms"], mark["last_error"])
        told = self._told.get((cluster, uid)) if seen_ms else None
        known = told or {"ahead": None, "ahead_in_local_queue": None}
        if known["ahead"] is None:
            because = because or _NOT_LISTED
        return {
            "ahead": known["ahead"],
            "ahead_in_local_queue": known["ahead_in_local_queue"],
            "told_at": format_instant(seen_ms) if seen_ms else None,
            "age_seconds": (self._as_of_ms - seen_ms) / MS_PER_SECOND if seen_ms else None,
            "because": because,
            "ahead_by_our_order": ours["ahead"],
        }


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
    return Order(store, as_of_ms, uid=row["uid"], queue=row["queue"]).place(row)


def _by_workload(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(row["cluster"], row["uid"]): row for row in rows}
