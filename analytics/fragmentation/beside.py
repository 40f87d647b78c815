"""What else is read with the inventory of a pool, in its columns, so that one query serves all of them."""

from typing import Final

from analytics.waiting import WHO_MAY_WAIT

# After `pool`, one row per cluster and GPU model, has been defined.
WHO_IS_LATE: Final = f"""\
union all
-- One row per pool and workload that waits: devices is how long its episode lasts, bound how long ago a pod
-- was last bound in the cluster, if in the last 7 days, both in milliseconds; name of the workload, with its
-- queue and what it asks as capacity, micro-GPU, -1 where that is not known; flavor is its state.
select
    'late' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    '' as resource,
    '' as product,
    1 as replicas,
    late.wanted as capacity,
    late.waited_ms as devices,
    0 as pods,
    late.quiet_ms as bound,
    0 as part,
    late.workload_uid as name,
    '' as labels,
    '' as taints,
    '' as wants,
    late.queue,
    late.state as flavor
from pool
inner join (
    with {WHO_MAY_WAIT},

    last_bound as (
        select cluster, max(bound_ms) as at_ms
        from node_holding
        where bound_ms < $as_of_ms and open_until_ms >= $as_of_ms - 604800000
        group by cluster
    )

    select
        waiting_span.cluster,
        waiting_span.workload_uid,
        waiting_span.queue,
        coalesce(waiting_span.requested_micro_gpus, -1) as wanted,
        sum(
            least(coalesce(waiting_span.end_ms, $as_of_ms), $as_of_ms) - waiting_span.start_ms
        ) as waited_ms,
        max_by(waiting_span.state, waiting_span.start_ms) as state,
        $as_of_ms - coalesce(max(last_bound.at_ms), 0) as quiet_ms
    from numbered_waits('of_waiter') as waiting_span
    left join last_bound on waiting_span.cluster = last_bound.cluster
    group by
        waiting_span.cluster,
        waiting_span.workload_uid,
        waiting_span.queue,
        waiting_span.requested_micro_gpus,
        waiting_span.episode
    having max(coalesce(waiting_span.end_ms, $as_of_ms)) >= $as_of_ms
) as late on pool.cluster = late.cluster
union all
-- One row per pool, queue and flavor in its quota: what is left of the quota as capacity, micro-GPU. A queue
-- without flavors has one for the pool's GPU model, whose flavor is ''.
select
    'room' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    '' as resource,
    '' as product,
    1 as replicas,
    room.left_over as capacity,
    0 as devices,
    0 as pods,
    0 as bound,
    0 as part,
    '' as name,
    '' as labels,
    '' as taints,
    '' as wants,
    room.queue,
    room.flavor
from pool
inner join (
    with given as (
        select distinct cluster, queue
        from offered_flavor
        where start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true)
    ),

    -- A pool of a ClusterQueue is named after its flavor, which has no slash: cohort/flavor.
    owned as (
        select
            share.cluster,
            share.queue,
            share.gpu_model,
            case when given.queue is null then '' else regexp_extract(share.pool, '[^/]*$') end as flavor,
            sum(share.quota) as quota
        from entity_share as share
        left join given on share.cluster = given.cluster and share.queue = given.queue
        where share.start_ms < $as_of_ms and share.until_ms >= $as_of_ms
        group by all
    ),

    reserving as (
        select cluster, workload_uid, queue, flavor, micro_gpus
        from gpu_reservation
        where
            start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
    ),

    reserved as (
        select cluster, queue, flavor, sum(micro_gpus) as micro_gpus
        from reserving
        group by all
        union all
        select cluster, queue, '' as flavor, sum(micro_gpus) as micro_gpus
        from reserving
        group by all
    ),

    -- What is held without a reservation: pods that still drain, and all where nobody reserves.
    held_beside as (
        select holding.cluster, holding.queue, holding.gpu_model, sum(holding.micro_gpus) as micro_gpus
        from gpu_holding as holding
        where
            holding.bound_ms < $as_of_ms
            and coalesce(holding.released_ms >= $as_of_ms, true)
            and holding.open_until_ms >= $as_of_ms
            and not exists (
                select 1 from reserving
                where
                    reserving.cluster = holding.cluster
                    and reserving.workload_uid = holding.workload_uid
            )
        group by all
    )

    select
        owned.cluster,
        owned.queue,
        owned.gpu_model,
        owned.flavor,
        owned.quota - coalesce(reserved.micro_gpus, 0) - coalesce(held_beside.micro_gpus, 0) as left_over
    from owned
    left join reserved
        on
            owned.cluster = reserved.cluster
            and owned.queue = reserved.queue
            and owned.flavor = reserved.flavor
    left join held_beside
        on
            owned.cluster = held_beside.cluster
            and owned.queue = held_beside.queue
            and owned.gpu_model = held_beside.gpu_model
) as room
    on pool.cluster = room.cluster and (room.flavor != '' or pool.gpu_model = room.gpu_model)
"""  # noqa: S608 (ours)

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
