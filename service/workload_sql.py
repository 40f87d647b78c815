"""The questions behind the life of one workload."""

from typing import Final

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
with thrown_out_by as (
    select distinct preempted_by as uid
    from attempt
    where cluster = $cluster and workload_uid = $uid and preempted_by != ''
),

of_preemptor as (
    select object_uid, workload_uid
    from member
    where cluster = $cluster and object_uid in (select uid from thrown_out_by)
),

preemptor as (
    select
        thrown_out_by.uid,
        coalesce(of_preemptor.workload_uid, thrown_out_by.uid) as workload_uid
    from thrown_out_by
    left join of_preemptor on thrown_out_by.uid = of_preemptor.object_uid
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
