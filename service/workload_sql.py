"""The questions behind the list of workloads and the life of one."""

from typing import Final

# One row per workload submitted before $as_of_ms, as it stood then. Facts from then on do not
# count: what ends later has not ended. Waits use the clocks of the metrics of the same name. MultiKueue's
# copies are told with their originals, unless one is asked for by its uid.
LIST: Final = """
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

copied as (
    select cluster, workload_uid, of_cluster, of_workload_uid
    from workload_copy
    where $uid is null or of_workload_uid = $uid
),

held as (
    select
        coalesce(copied.of_cluster, holding.cluster) as cluster,
        coalesce(copied.of_workload_uid, holding.workload_uid) as workload_uid,
        count(*) = count(micro_gpus) as known,
        sum(micro_gpus::hugeint * (least(coalesce(released_ms, $as_of_ms), $as_of_ms) - bound_ms))::double
            / 1e9 as gpu_seconds
    from holding
    left join copied
        on holding.cluster = copied.cluster and holding.workload_uid = copied.workload_uid
    where
        bound_ms < $as_of_ms
        and ($uid is null or holding.workload_uid = $uid or copied.workload_uid is not null)
    group by all
),

thrown_out as (
    select
        coalesce(copied.of_cluster, eviction.cluster) as cluster,
        coalesce(copied.of_workload_uid, eviction.workload_uid) as workload_uid,
        coalesce(sum(1 + missed) filter (where preempted), 0)::bigint as preemptions,
        coalesce(sum(1 + missed) filter (where not preempted), 0)::bigint as evictions,
        sum(missed)::bigint as missed_evictions
    from eviction
    left join copied
        on eviction.cluster = copied.cluster and eviction.workload_uid = copied.workload_uid
    where
        at_ms < $as_of_ms
        and ($uid is null or eviction.workload_uid = $uid or copied.workload_uid is not null)
    group by all
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
    workload.skewed,
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
    and (
        $uid is not null
        or not exists (
            select 1
            from workload_copy
            where
                workload_copy.cluster = workload.cluster
                and workload_copy.workload_uid = workload.workload_uid
        )
    )
order by workload.submitted_ms, workload.cluster, workload.workload_uid
"""

# One row per span that began before $as_of_ms.
SPANS: Final = """
select state, start_ms, end_ms, start_earliest_ms, reason
from span
where cluster = $cluster and workload_uid = $uid and start_ms < $as_of_ms
order by start_ms
"""

# One row per attempt that began before $as_of_ms. Kueue names its preemptor by the Workload's uid,
# kube-scheduler by the pod's: either is found among the members.
ATTEMPTS: Final = """
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

# One row per pod that was bound before $as_of_ms, those of copies included; restarts are those seen by then.
PODS: Final = """
with pods as (
    select *
    from holding
    where cluster = $cluster and workload_uid = $uid and bound_ms < $as_of_ms
    union all by name
    select
        holding.* exclude (attempt),
        (
            select max(attempt.number)
            from attempt
            where
                attempt.cluster = $cluster
                and attempt.workload_uid = $uid
                and attempt.start_ms <= holding.bound_ms
        ) as attempt
    from workload_copy
    inner join holding
        on workload_copy.cluster = holding.cluster and workload_copy.workload_uid = holding.workload_uid
    where
        workload_copy.of_cluster = $cluster
        and workload_copy.of_workload_uid = $uid
        and holding.bound_ms < $as_of_ms
),

restarted as (
    select transition.cluster, transition.uid, transition.subject, max(transition.amount) as restarts
    from transition
    where
        transition.moment = 'restarts'
        and transition.at_ms < $as_of_ms
        and transition.cluster in (select cluster from pods)
        and transition.uid in (select pod_uid from pods)
    group by all
),

restarts_of as (
    select cluster, uid, sum(restarts)::bigint as restarts
    from restarted
    group by cluster, uid
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
from pods as holding
left join restarts_of on holding.cluster = restarts_of.cluster and holding.pod_uid = restarts_of.uid
order by holding.attempt, holding.bound_ms, holding.pod_name
"""

# One row per wait of a single pod that began before $as_of_ms.
MEMBER_WAITS: Final = """
select pod_uid, start_ms, end_ms, micro_gpus
from member_wait
where cluster = $cluster and workload_uid = $uid and start_ms < $as_of_ms
order by start_ms, pod_uid
"""

# One row per checkpoint that it told of, the newest first; by is empty for the usual annotation.
CHECKPOINTS: Final = """
select transition.at_ms, max(transition.amount) as step, max(transition.detail) as detail,
    min(transition.subject) as by
from transition
inner join member on transition.cluster = member.cluster and transition.uid = member.object_uid
where transition.cluster = $cluster and member.workload_uid = $uid
    and transition.moment = 'checkpoint' and transition.at_ms < $as_of_ms
group by transition.at_ms
order by transition.at_ms desc
"""

# One row per cluster and contradiction of workloads that lists and figures leave out for it.
SKEWED: Final = """
select cluster, skewed, count(*) as count
from workload
where submitted_ms < $as_of_ms and skewed != '' and coalesce(requested_micro_gpus > 0, true)
group by cluster, skewed
order by cluster, skewed
"""
