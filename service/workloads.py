"""Workloads as they stood at an instant: rows of the list, and the whole life of one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from analytics.waiting import WAITING_NOW
from api.answers import Listing, ListQuestion, Record
from api.parameters import nearest
from domain.errors import UsageError
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_SECOND, format_instant
from domain.workload import Outcome
from store.embedded import Store

# One row per workload submitted before $as_of_ms, as it stood then. Facts from then on do not
# count: what ends later has not ended. Waits use the clocks of the metrics of the same name.
_LIST: Final = """
with course as (
    select
        span.cluster,
        span.workload_uid,
        arg_max(span.state, span.start_ms) as state,
        arg_max(span.reason, span.start_ms) as reason,
        sum(least(coalesce(span.end_ms, $as_of_ms), $as_of_ms) - span.start_ms)
            filter (where span.first_wait and span.state in ('queued', 'checking', 'placing'))
            as queue_wait_ms,
        sum(least(coalesce(span.end_ms, $as_of_ms), $as_of_ms) - span.start_ms)
            filter (
                where span.state = 'starting' and coalesce(span.start_ms < workload.first_running_ms, true)
            )
            as start_up_ms,
        sum(least(coalesce(span.end_ms, $as_of_ms), $as_of_ms) - span.start_ms)
            filter (where not span.first_wait and span.state in ('queued', 'checking', 'placing'))
            as requeue_wait_ms
    from span
    inner join workload
        on span.cluster = workload.cluster and span.workload_uid = workload.workload_uid
    where span.start_ms < $as_of_ms and ($uid is null or span.workload_uid = $uid)
    group by span.cluster, span.workload_uid
),

held as (
    select
        cluster,
        workload_uid,
        count(*) = count(micro_gpus) as known,
        sum(micro_gpus::hugeint * (least(coalesce(released_ms, $as_of_ms), $as_of_ms) - bound_ms))::double
            / 1e9 as gpu_seconds
    from holding
    where bound_ms < $as_of_ms and ($uid is null or workload_uid = $uid)
    group by cluster, workload_uid
),

thrown_out as (
    select
        cluster,
        workload_uid,
        coalesce(sum(1 + missed) filter (where preempted), 0)::bigint as preemptions,
        coalesce(sum(1 + missed) filter (where not preempted), 0)::bigint as evictions,
        sum(missed)::bigint as missed_evictions
    from eviction
    where at_ms < $as_of_ms and ($uid is null or workload_uid = $uid)
    group by cluster, workload_uid
)

select
    workload.workload_uid as uid,
    workload.cluster,
    workload.kind,
    workload.namespace,
    workload.name,
    workload.team,
    workload.user_name as user,
    workload.queue,
    workload.priority_class,
    workload.service_class,
    case when workload.first_placed_ms < $as_of_ms then workload.gpu_model else '' end as gpu_model,
    coalesce(course.state, 'queued') as state,
    coalesce(course.reason, '') as reason,
    workload.requested_micro_gpus,
    workload.submitted_ms,
    workload.first_placed_ms,
    workload.first_running_ms,
    workload.ended_ms,
    workload.ended_earliest_ms,
    workload.outcome,
    coalesce(course.queue_wait_ms, 0)::bigint as queue_wait_ms,
    coalesce(course.start_up_ms, 0)::bigint as start_up_ms,
    coalesce(course.requeue_wait_ms, 0)::bigint as requeue_wait_ms,
    coalesce(thrown_out.preemptions, 0) as preemptions,
    coalesce(thrown_out.evictions, 0) as evictions,
    coalesce(thrown_out.missed_evictions, 0) as missed_evictions,
    case when coalesce(held.known, true) then coalesce(held.gpu_seconds, 0) end as gpu_seconds
from workload
left join course
    on workload.cluster = course.cluster and workload.workload_uid = course.workload_uid
left join held
    on workload.cluster = held.cluster and workload.workload_uid = held.workload_uid
left join thrown_out
    on workload.cluster = thrown_out.cluster and workload.workload_uid = thrown_out.workload_uid
where
    workload.submitted_ms < $as_of_ms
    and (
        workload.workload_uid = $uid
        or ($uid is null and coalesce(workload.requested_micro_gpus > 0, true) and workload.skewed = '')
    )
order by workload.submitted_ms, workload.cluster, workload.workload_uid
"""

# One row per span that began before $as_of_ms.
_SPANS: Final = """
select state, start_ms, end_ms, start_earliest_ms, reason
from span
where cluster = $cluster and workload_uid = $uid and start_ms < $as_of_ms
order by start_ms
"""

# One row per attempt that began before $as_of_ms. Kueue names its preemptor by the Workload's uid,
# kube-scheduler by the pod's: either is found among the members.
_ATTEMPTS: Final = """
with preemptor as (
    select distinct
        attempt.preempted_by as uid,
        coalesce(member.workload_uid, attempt.preempted_by) as workload_uid
    from attempt
    left join member
        on attempt.cluster = member.cluster and attempt.preempted_by = member.object_uid
    where attempt.cluster = $cluster and attempt.workload_uid = $uid and attempt.preempted_by != ''
)

select
    attempt.number,
    attempt.start_ms,
    attempt.end_ms,
    attempt.outcome,
    attempt.reason,
    attempt.preempted_by,
    coalesce(min(workload.namespace || '/' || workload.name), '') as preempted_by_name,
    coalesce(min(workload.workload_uid), '') as preempted_by_workload,
    attempt.source
from attempt
left join preemptor on attempt.preempted_by = preemptor.uid
left join workload on attempt.cluster = workload.cluster and preemptor.workload_uid = workload.workload_uid
where attempt.cluster = $cluster and attempt.workload_uid = $uid and attempt.start_ms < $as_of_ms
group by all
order by attempt.number
"""

# One row per pod that was bound before $as_of_ms; restarts are those seen by then.
_PODS: Final = """
with restarted as (
    select uid, subject, max(amount) as restarts
    from transition
    where cluster = $cluster and moment = 'restarts' and at_ms < $as_of_ms
        and uid in (select pod_uid from holding where cluster = $cluster and workload_uid = $uid)
    group by uid, subject
),

restarts_of as (
    select uid, sum(restarts)::bigint as restarts
    from restarted
    group by uid
)

select
    holding.attempt,
    holding.pod_uid,
    holding.pod_name,
    holding.node,
    holding.gpu_model,
    holding.micro_gpus,
    holding.bound_ms,
    holding.bound_earliest_ms,
    holding.started_ms,
    holding.released_ms,
    holding.released_earliest_ms,
    coalesce(restarts_of.restarts, 0) as restarts
from holding
left join restarts_of on holding.pod_uid = restarts_of.uid
where holding.cluster = $cluster and holding.workload_uid = $uid and holding.bound_ms < $as_of_ms
order by holding.attempt, holding.bound_ms, holding.pod_name
"""

# Columns that a list may be ordered by, as the API spells them -> as the query does.
_SORTS: Final = {
    **{
        name: name
        for name in ("name", "namespace", "team", "user", "queue", "cluster", "state", "reason", "outcome")
    },
    **{name: name for name in ("priority_class", "service_class", "gpu_model", "preemptions", "evictions")},
    "uid": "uid",
    "kind": "kind",
    "gpu_seconds": "gpu_seconds",
    "requested_gpus": "requested_micro_gpus",
    "submitted_at": "submitted_ms",
    "first_placed_at": "first_placed_ms",
    "first_running_at": "first_running_ms",
    "ended_at": "ended_ms",
    "queue_wait_seconds": "queue_wait_ms",
    "time_to_running_seconds": "time_to_running_ms",
    "requeue_wait_seconds": "requeue_wait_ms",
    "waiting_seconds": "waiting_ms",
}
_INSTANTS: Final = ("first_placed_ms", "first_running_ms", "ended_ms")


def listing(store: Store, question: ListQuestion, as_of_ms: int) -> Listing:
    """
    A page of the workloads that ask GPUs; records set aside for skewed stamps are not among them.

    Raises:
        UsageError: the column to sort by does not exist.
    """
    column = question.sort.removeprefix("-")
    if column not in _SORTS:
        message = f"sort {question.sort!r}: {nearest(column, list(_SORTS))}"
        raise UsageError(message)
    frame = _as_it_stood(store, as_of_ms)
    for dimension, values in question.filters.items():
        frame = frame.filter(pl.col(dimension).is_in(list(values)))
    if question.states:
        frame = frame.filter(pl.col("state").is_in(list(question.states)))
    ordered = frame.sort(
        _SORTS[column], descending=question.sort.startswith("-"), nulls_last=True, maintain_order=True
    )
    page = ordered.slice((question.page - 1) * question.page_size, question.page_size)
    return Listing(
        as_of_ms=as_of_ms,
        rows=[_record(row) for row in page.iter_rows(named=True)],
        total=frame.height,
        page=question.page,
        page_size=question.page_size,
    )


def detail(store: Store, uid: str, as_of_ms: int) -> Record | None:
    """One workload with its spans, attempts and pods; None if it was not submitted by then."""
    frame = _as_it_stood(store, as_of_ms, uid=uid)
    if frame.is_empty():
        return None
    row = frame.row(0, named=True)
    place = {"cluster": row["cluster"], "uid": uid, "as_of_ms": as_of_ms}
    pods = store.rows(_PODS, place)
    return {
        "as_of": format_instant(as_of_ms),
        **_record(row),
        "spans": [_span(span, as_of_ms) for span in store.rows(_SPANS, place)],
        "attempts": [_attempt(attempt, pods, as_of_ms) for attempt in store.rows(_ATTEMPTS, place)],
    }


def _as_it_stood(store: Store, as_of_ms: int, *, uid: str | None = None) -> pl.DataFrame:
    """The workloads, or one; how long each waits is told by the query of the metrics on waiting."""
    listed = _clipped(store.frame(_LIST, {"as_of_ms": as_of_ms, "uid": uid}), as_of_ms)
    waiting = store.frame(WAITING_NOW, {"as_of_ms": as_of_ms}).filter(pl.col("workloads") > 0)
    episodes = waiting.select("cluster", uid="workload_uid", waiting_ms=pl.col("episode_ms").cast(pl.Int64))
    return listed.join(episodes, on=["cluster", "uid"], how="left", maintain_order="left")


def _clipped(frame: pl.DataFrame, as_of_ms: int) -> pl.DataFrame:
    """Instants from `as_of_ms` on are not known yet, and what hangs on them neither."""
    ended = pl.col("ended_ms").fill_null(as_of_ms) < as_of_ms
    ran = pl.col("first_running_ms").fill_null(as_of_ms) < as_of_ms
    return frame.with_columns(
        [pl.when(pl.col(name) < as_of_ms).then(pl.col(name)).alias(name) for name in _INSTANTS]
        + [
            pl.when(ended).then("ended_earliest_ms").alias("ended_earliest_ms"),
            pl.when(ended).then("outcome").otherwise(pl.lit(str(Outcome.OPEN))).alias("outcome"),
            pl.when(ran).then(pl.col("queue_wait_ms") + pl.col("start_up_ms")).alias("time_to_running_ms"),
        ]
    )


def _record(row: Mapping[str, Any]) -> Record:
    texts = ("uid", "cluster", "kind", "namespace", "name", "team", "user", "queue", "priority_class")
    return {
        **{name: row[name] for name in (*texts, "service_class", "gpu_model", "state", "reason")},
        "requested_gpus": _gpus(row["requested_micro_gpus"]),
        "submitted_at": format_instant(row["submitted_ms"]),
        "first_placed_at": _instant(row["first_placed_ms"]),
        "first_running_at": _instant(row["first_running_ms"]),
        **_bounded("ended_at", row["ended_ms"], row["ended_earliest_ms"]),
        "outcome": row["outcome"],
        "queue_wait_seconds": row["queue_wait_ms"] / MS_PER_SECOND,
        "time_to_running_seconds": _seconds(row["time_to_running_ms"]),
        "requeue_wait_seconds": row["requeue_wait_ms"] / MS_PER_SECOND,
        "waiting_seconds": _seconds(row["waiting_ms"]),
        **{name: row[name] for name in ("preemptions", "evictions", "missed_evictions", "gpu_seconds")},
    }


def _span(row: Mapping[str, Any], as_of_ms: int) -> Record:
    return {
        "state": row["state"],
        **_bounded("start_at", row["start_ms"], row["start_earliest_ms"]),
        "end_at": _instant(_before(row["end_ms"], as_of_ms)),
        "reason": row["reason"],
    }


def _attempt(row: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], as_of_ms: int) -> Record:
    end_ms = _before(row["end_ms"], as_of_ms)
    over = end_ms is not None
    return {
        "number": row["number"],
        "start_at": format_instant(row["start_ms"]),
        "end_at": _instant(end_ms),
        "outcome": row["outcome"] if over else str(Outcome.OPEN),
        "reason": row["reason"] if over else "",
        **{
            name: row[name] if over else ""
            for name in ("preempted_by", "preempted_by_name", "preempted_by_workload")
        },
        "source": row["source"],
        "pods": [_pod(pod, as_of_ms) for pod in pods if pod["attempt"] == row["number"]],
    }


def _pod(row: Mapping[str, Any], as_of_ms: int) -> Record:
    released_ms = _before(row["released_ms"], as_of_ms)
    held_ms = (as_of_ms if released_ms is None else released_ms) - row["bound_ms"]
    micro_gpus = row["micro_gpus"]
    return {
        "uid": row["pod_uid"],
        "name": row["pod_name"],
        "node": row["node"],
        "gpu_model": row["gpu_model"],
        "gpus": _gpus(micro_gpus),
        **_bounded("bound_at", row["bound_ms"], row["bound_earliest_ms"]),
        "started_at": _instant(_before(row["started_ms"], as_of_ms)),
        **_bounded("released_at", released_ms, row["released_earliest_ms"]),
        "restarts": row["restarts"],
        "gpu_seconds": None if micro_gpus is None else micro_gpus * held_ms / (MICRO_PER_GPU * MS_PER_SECOND),
    }


def _bounded(name: str, at_ms: int | None, earliest_ms: int | None) -> Record:
    """An instant; one that is only known within limits has both beside it."""
    if at_ms is None or earliest_ms is None:
        return {name: _instant(at_ms)}
    latest = format_instant(at_ms)
    return {name: latest, f"{name}_earliest": format_instant(earliest_ms), f"{name}_latest": latest}


def _before(at_ms: int | None, as_of_ms: int) -> int | None:
    return at_ms if at_ms is not None and at_ms < as_of_ms else None


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)


def _seconds(length_ms: int | None) -> float | None:
    return None if length_ms is None else length_ms / MS_PER_SECOND


def _gpus(micro_gpus: int | None) -> float | None:
    return None if micro_gpus is None else micro_gpus / MICRO_PER_GPU
