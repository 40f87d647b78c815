"""
The questions behind the list of workloads: which stand on a page of it, and the rows of these.

Facts from $as_of_ms on do not count: what ends later has not ended. Waits use the clocks of the metrics of
the same name. What has ended wholly is looked at only where it stands on the page, or is what the order
goes by, so that a page costs no more after years.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from analytics.waiting import WAITING_NOW
from analytics.wastage.of_workloads import WASTED_AMOUNT

_WAITS: Final = "('queued', 'checking', 'placing')"
_LENGTH: Final = "least(coalesce(span.end_ms, $as_of_ms), $as_of_ms) - span.start_ms"
_STARTS_UP: Final = "span.state = 'starting' and coalesce(span.start_ms < workload.first_running_ms, true)"
# What asks GPUs, was submitted by then, and is told of in lists: no records whose stamps contradict each
# other, and no copies of MultiKueue, which are told with their originals.
_LISTED: Final = """
    workload.submitted_ms < $as_of_ms
    and coalesce(workload.requested_micro_gpus > 0, true)
    and workload.skewed = ''
    and not workload.is_copy"""

# Columns of the table `workload`, as they stood.
_STOOD: Final = {
    "uid": "workload.workload_uid",
    **{name: f"workload.{name}" for name in ("cluster", "kind", "namespace", "name", "team")},
    "user": "workload.user_name",
    **{name: f"workload.{name}" for name in ("queue", "priority_class", "service_class")},
    "gpu_model": "case when workload.first_placed_ms < $as_of_ms then workload.gpu_model else '' end",
    "requested_micro_gpus": "workload.requested_micro_gpus",
    "submitted_ms": "workload.submitted_ms",
    **{
        name: f"case when workload.{name} < $as_of_ms then workload.{name} end"
        for name in ("first_placed_ms", "first_running_ms", "ended_ms")
    },
    "ended_earliest_ms": "case when workload.ended_ms < $as_of_ms then workload.ended_earliest_ms end",
    "outcome": "case when workload.ended_ms < $as_of_ms then workload.outcome else 'open' end",
    "skewed": "workload.skewed",
}
_STATE: Final = (
    "case when workload.open_until_ms < $as_of_ms then 'ended' else coalesce(course.state, 'queued') end"
)
_SECONDS: Final = "case when coalesce(held.known, true) then coalesce(held.gpu_seconds, 0) end"

# Columns of the row of a workload that follow from its other rows.
_FOLLOWING: Final = {
    "state": _STATE,
    "reason": "coalesce(course.reason, '')",
    "queue_wait_ms": "coalesce(course.queue_wait_ms, 0)::bigint",
    "requeue_wait_ms": "coalesce(course.requeue_wait_ms, 0)::bigint",
    "time_to_running_ms": """
        case
            when workload.first_running_ms < $as_of_ms
                then (coalesce(course.queue_wait_ms, 0) + coalesce(course.start_up_ms, 0))::bigint
        end""",
    "preemptions": "coalesce(thrown_out.preemptions, 0)",
    "evictions": "coalesce(thrown_out.evictions, 0)",
    "missed_evictions": "coalesce(thrown_out.missed_evictions, 0)",
    "gpu_seconds": _SECONDS,
}

# The same to order by, and of which other tables: of what has ended, its own row tells what it waited.
_QUEUE_WAIT: Final = """
    case
        when workload.open_until_ms < $as_of_ms then coalesce(workload.first_wait_ms, 0)
        else coalesce(course.queue_wait_ms, 0)
    end"""
_TIME_TO_RUNNING: Final = f"""
    case
        when workload.first_running_ms < $as_of_ms then {_QUEUE_WAIT} + coalesce(started_up.start_up_ms, 0)
    end"""
_KEYS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    **{name: (sql, ()) for name, sql in _STOOD.items()},
    "state": (_STATE, ("course",)),
    "reason": (_FOLLOWING["reason"], ("course",)),
    "queue_wait_ms": (_QUEUE_WAIT, ("course",)),
    "requeue_wait_ms": ("coalesce(requeued.wait_ms, 0)", ("requeued",)),
    "time_to_running_ms": (_TIME_TO_RUNNING, ("course", "started_up")),
    **{name: (_FOLLOWING[name], ("thrown_out",)) for name in ("preemptions", "evictions")},
    "gpu_seconds": (_SECONDS, ("held",)),
    "wasted_amount": (
        f"case when coalesce({_SECONDS}, 1) > 0 then coalesce(wasted.wasted_amount, 0) end",
        ("held", "wasted"),
    ),
    "waiting_ms": ("waiting.waiting_ms", ("waiting",)),
}


def _course(which: str) -> str:
    return f"""
    select
        span.cluster,
        span.workload_uid,
        arg_max(span.state, span.start_ms) as state,
        arg_max(span.reason, span.start_ms) as reason,
        sum({_LENGTH}) filter (where span.first_wait and span.state in {_WAITS}) as queue_wait_ms,
        sum({_LENGTH}) filter (where {_STARTS_UP}) as start_up_ms,
        sum({_LENGTH}) filter (where not span.first_wait and span.state in {_WAITS}) as requeue_wait_ms
    from span
    inner join workload
        on span.cluster = workload.cluster and span.workload_uid = workload.workload_uid
    where span.start_ms < $as_of_ms and {which}
    group by span.cluster, span.workload_uid"""  # noqa: S608 (ours)


def _held(which: str) -> str:
    return f"""
    select
        coalesce(copied.of_cluster, holding.cluster) as cluster,
        coalesce(copied.of_workload_uid, holding.workload_uid) as workload_uid,
        count(*) = count(micro_gpus) as known,
        sum(micro_gpus::hugeint * (least(coalesce(released_ms, $as_of_ms), $as_of_ms) - bound_ms))::double
            / 1e9 as gpu_seconds
    from holding
    left join copied
        on holding.cluster = copied.cluster and holding.workload_uid = copied.workload_uid
    where bound_ms < $as_of_ms and {which}
    group by all"""  # noqa: S608 (ours)


def _thrown_out(which: str) -> str:
    return f"""
    select
        coalesce(copied.of_cluster, eviction.cluster) as cluster,
        coalesce(copied.of_workload_uid, eviction.workload_uid) as workload_uid,
        coalesce(sum(1 + missed) filter (where preempted), 0)::bigint as preemptions,
        coalesce(sum(1 + missed) filter (where not preempted), 0)::bigint as evictions,
        sum(missed)::bigint as missed_evictions
    from eviction
    left join copied
        on eviction.cluster = copied.cluster and eviction.workload_uid = copied.workload_uid
    where at_ms < $as_of_ms and {which}
    group by all"""  # noqa: S608 (ours)


_WAITING: Final = f"""
    select cluster, workload_uid, episode_ms::bigint as waiting_ms
    from ({WAITING_NOW})
    where workloads > 0"""  # noqa: S608 (ours)

# What orders of all workloads go by: of what goes on the course, of all that ever was only what they ask.
_OF_ALL: Final = {
    "copied": "select cluster, workload_uid, of_cluster, of_workload_uid from workload_copy",
    "course": _course("span.open_until_ms >= $as_of_ms"),
    "requeued": f"""
    select span.cluster, span.workload_uid, sum({_LENGTH})::bigint as wait_ms
    from span
    where span.start_ms < $as_of_ms and not span.first_wait and span.state in {_WAITS}
    group by span.cluster, span.workload_uid""",  # noqa: S608 (ours)
    "started_up": f"""
    select span.cluster, span.workload_uid, sum({_LENGTH})::bigint as start_up_ms
    from span
    inner join workload
        on span.cluster = workload.cluster and span.workload_uid = workload.workload_uid
    where span.start_ms < $as_of_ms and {_STARTS_UP}
    group by span.cluster, span.workload_uid""",  # noqa: S608 (ours)
    "held": _held("true"),
    "thrown_out": _thrown_out("true"),
    "wasted": f"select cluster, uid as workload_uid, wasted_amount from ({WASTED_AMOUNT})",  # noqa: S608 (ours)
    "waiting": _WAITING,
}
_NEED: Final = {"held": ("copied",), "thrown_out": ("copied",)}

# One row per workload of $uids that was submitted before $as_of_ms, as it stood then: all of them or, where
# they are to be $listed, those that lists tell of.
ROWS: Final = f"""
with wanted as (
    select unnest($uids::varchar[]) as workload_uid
),

copied as (
    select cluster, workload_uid, of_cluster, of_workload_uid
    from workload_copy
    where of_workload_uid in (select workload_uid from wanted)
),

course as ({_course("span.workload_uid in (select workload_uid from wanted)")}
),

held as ({
    _held(
        "(holding.workload_uid in (select workload_uid from wanted) "
        "or holding.workload_uid in (select workload_uid from copied))"
    )
}
),

thrown_out as ({
    _thrown_out(
        "(eviction.workload_uid in (select workload_uid from wanted) "
        "or eviction.workload_uid in (select workload_uid from copied))"
    )
}
),

waiting as ({_WAITING}
)

select
    {", ".join(f"{sql} as {name}" for name, sql in (_STOOD | _FOLLOWING).items())},
    waiting.waiting_ms
from workload
left join course
    on workload.cluster = course.cluster and workload.workload_uid = course.workload_uid
left join held
    on workload.cluster = held.cluster and workload.workload_uid = held.workload_uid
left join thrown_out
    on workload.cluster = thrown_out.cluster and workload.workload_uid = thrown_out.workload_uid
left join waiting
    on workload.cluster = waiting.cluster and workload.workload_uid = waiting.workload_uid
where
    workload.workload_uid in (select workload_uid from wanted)
    and workload.submitted_ms < $as_of_ms
    and (not $listed or ({_LISTED}))
order by workload.submitted_ms, workload.cluster, workload.workload_uid
"""  # noqa: S608 (ours)


def count(filtered: Collection[str], *, by_state: bool) -> str:
    """One row: how many workloads the list has; parameters as of `page`."""
    ctes, joins = _joined(["course"] if by_state else [])
    return f"{ctes} select count(*)::bigint as total from workload {joins} where {_where(filtered, by_state)}"  # noqa: S608 (ours)


def page(filtered: Collection[str], *, by_state: bool, sort: str, descending: bool) -> str:
    """
    One row per workload of a page of the list, in its order: cluster and uid.

    Ties are broken by when they were submitted, and then by who they are.

    Args:
        filtered: columns of which the parameter of their name has the values that are wanted, a list.
        by_state: whether $states are wanted, and no others.
        sort: a column of `ROWS`, or `wasted_amount`.
        descending: the largest first; what is not known comes last both ways.
    """
    key, needed = _KEYS[sort]
    ctes, joins = _joined([*needed, *(["course"] if by_state else [])])
    return f"""{ctes}
    select workload.cluster, workload.workload_uid as uid
    from workload {joins}
    where {_where(filtered, by_state)}
    order by {key} {"desc" if descending else "asc"} nulls last, workload.submitted_ms, workload.cluster,
        workload.workload_uid
    limit $page_size offset $skipped"""  # noqa: S608 (ours)


def _where(filtered: Collection[str], by_state: bool) -> str:  # noqa: FBT001 (one of two)
    wanted = [f"list_contains(${name}::varchar[], {_STOOD[name]})" for name in filtered]
    if by_state:
        wanted.append(f"list_contains($states::varchar[], {_STATE})")
    return " and ".join([_LISTED, *wanted])


def _joined(needed: Sequence[str]) -> tuple[str, str]:
    names = dict.fromkeys(needed)
    ctes = dict.fromkeys(part for name in names for part in (*_NEED.get(name, ()), name))
    parts = ", ".join(f"{name} as ({_OF_ALL[name]})" for name in ctes)
    joins = " ".join(
        f"left join {name} on workload.cluster = {name}.cluster"
        f" and workload.workload_uid = {name}.workload_uid"
        for name in names
    )
    return f"with {parts}" if parts else "", joins
