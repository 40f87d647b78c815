"""What else is read with the inventory of a pool, in its columns, so that one query serves all of them."""

from typing import Final

# After `pool`, one row per cluster and GPU model, has been defined.
WHO_IS_LATE: Final = """\
union all
-- One row per pool and workload that waits: devices is how long its episode lasts, bound how long ago a pod
-- was last bound in the cluster, if in the last 7 days, both in milliseconds; pods is 1 where quota does not
-- keep it back.
select
    'late' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    '' as resource,
    '' as product,
    1 as replicas,
    0 as capacity,
    late.waited_ms as devices,
    late.is_admissible as pods,
    late.quiet_ms as bound,
    0 as part,
    late.workload_uid as name,
    '' as labels,
    '' as taints,
    '' as wants,
    '' as queue,
    '' as flavor
from pool
inner join (
    with now_waiting as (
        select
            cluster,
            workload_uid,
            queue,
            requested_micro_gpus,
            sum(least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms) as waited_ms,
            max_by(state, start_ms) as state
        from waiting_span
        where start_ms < $as_of_ms and open_until_ms >= $as_of_ms
        group by cluster, workload_uid, queue, requested_micro_gpus, episode
        having max(coalesce(end_ms, $as_of_ms)) >= $as_of_ms
    ),

    kept_back as (
        select
            cluster,
            queue,
            case when count(*) = count(requested_micro_gpus) then sum(requested_micro_gpus) end as wanted
        from now_waiting
        where state = 'queued'
        group by cluster, queue
    ),

    owned as (
        select cluster, queue, sum(quota) as quota
        from entity_share
        where start_ms < $as_of_ms and until_ms >= $as_of_ms
        group by cluster, queue
    ),

    reserved as (
        select cluster, queue, sum(micro_gpus) as micro_gpus
        from gpu_reservation
        where
            start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
        group by cluster, queue
    ),

    in_use as (
        select cluster, queue, sum(micro_gpus) as micro_gpus
        from gpu_holding
        where
            bound_ms < $as_of_ms and coalesce(released_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
        group by cluster, queue
    ),

    last_bound as (
        select cluster, max(bound_ms) as at_ms
        from node_holding
        where bound_ms < $as_of_ms and open_until_ms >= $as_of_ms - 604800000
        group by cluster
    )

    select
        now_waiting.cluster,
        now_waiting.workload_uid,
        now_waiting.waited_ms,
        $as_of_ms - coalesce(last_bound.at_ms, 0) as quiet_ms,
        case
            when now_waiting.state = 'placing' then 1
            when
                now_waiting.state = 'queued'
                and coalesce(
                    kept_back.wanted + greatest(
                        coalesce(reserved.micro_gpus, 0), coalesce(in_use.micro_gpus, 0)
                    ) <= owned.quota,
                    false
                ) then 1
            else 0
        end as is_admissible
    from now_waiting
    left join kept_back on now_waiting.cluster = kept_back.cluster and now_waiting.queue = kept_back.queue
    left join owned on now_waiting.cluster = owned.cluster and now_waiting.queue = owned.queue
    left join reserved on now_waiting.cluster = reserved.cluster and now_waiting.queue = reserved.queue
    left join in_use on now_waiting.cluster = in_use.cluster and now_waiting.queue = in_use.queue
    left join last_bound on now_waiting.cluster = last_bound.cluster
) as late on pool.cluster = late.cluster
"""

# The shapes of the last 7 days, as in the inventory.
ASK_NO_GPU: Final = """\
union all
-- One row per pool: minimum members of workloads that asked no GPU in the last 7 days.
select
    'plain' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    '' as resource,
    '' as product,
    1 as replicas,
    0 as capacity,
    0 as devices,
    sum(plain_workload.pods) as pods,
    0 as bound,
    0 as part,
    '' as name,
    '' as labels,
    '' as taints,
    '' as wants,
    '' as queue,
    '' as flavor
from plain_workload
inner join pool on plain_workload.cluster = pool.cluster
where
    plain_workload.submitted_ms < $as_of_ms
    and plain_workload.submitted_ms >= $as_of_ms - 604800000
    and plain_workload.open_until_ms >= $as_of_ms - 604800000
group by pool.cluster, pool.gpu_model
"""
