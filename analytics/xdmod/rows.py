"""
The rows on which figures by Open XDMoD's rules rest.

Its job is a stay here: an attempt of a workload, booked from its submission or re-queueing to its end. A job
that never started is none. Whatever was known of a label before the window has a row of zeros in it. What
MultiKueue gave to a worker cluster is one job, of the cluster that manages it, with the pods of its copies.

Source: Open XDMoD, jobs realm: hpc-aggregation.json, which books jobs by day and month, and
Jobs-statistics.json, which adds the bookings up.
"""

from typing import Final

# The parts of one, in which counts of each resource are whole numbers.
PARTS: Final = {"wall": 1, "cpu": 1_000, "gpu": 1_000_000, "node": 1}
POPULATION: Final = {"population": ("gpu",)}
DIMENSIONS: Final = (
    *("cluster", "queue", "service_class", "priority_class", "team", "user_name"),
    *("population", "gpu_count"),
)
JOB_ADDS: Final = (
    *("running", "ended", "started", "submitted_by_day", "submitted_by_month"),
    *("wait_ms", "squared_wait", "weight", "stretched", "unweighted"),
)
USED_ADDS: Final = ("running", "ended", "amount", "squared", "by_size", "unknown", "unsized")

_LABELS: Final = "cluster, queue, service_class, priority_class, team, user_name, population"

# A job runs on each day that it touches, so also on the one at whose first instant it ends.
_STAYS: Final = """\
with job as (
    select
        booked_stay.*,
        -- Pods are bound before that, also those of a stay that ended at once.
        greatest(booked_stay.end_ms, booked_stay.start_ms + 1) as bound_before_ms,
        coalesce(
            lag(greatest(booked_stay.end_ms, booked_stay.start_ms + 1)) over (
                partition by booked_stay.cluster, booked_stay.workload_uid order by booked_stay.number
            ), 0
        ) as bound_from_ms
    from booked_stay
    anti join workload_copy
        on booked_stay.cluster = workload_copy.cluster
        and booked_stay.workload_uid = workload_copy.workload_uid
    where booked_stay.start_ms < $as_of_ms
),

pod as (
    select booked_pod.*
    from booked_pod
    anti join workload_copy
        on booked_pod.cluster = workload_copy.cluster
        and booked_pod.workload_uid = workload_copy.workload_uid
    union all
    select
        booked_pod.*
        replace (job.cluster as cluster, job.workload_uid as workload_uid, job.number as number)
    from booked_pod
    inner join workload_copy
        on booked_pod.cluster = workload_copy.cluster
        and booked_pod.workload_uid = workload_copy.workload_uid
    inner join job
        on workload_copy.of_cluster = job.cluster
        and workload_copy.of_workload_uid = job.workload_uid
        and job.bound_from_ms <= booked_pod.bound_ms
        and (job.end_ms is null or job.bound_before_ms > booked_pod.bound_ms)
),

size as (
    select
        cluster,
        workload_uid,
        number,
        case when count(*) = count(micro_gpus) then sum(micro_gpus)::bigint end as micro_gpus,
        case when count(*) = count(milli_cpus) then sum(milli_cpus)::bigint end as milli_cpus,
        case
            when not bool_or(is_whole) then nullif(count(distinct node), 0)
            when count(*) = count(nodes) then sum(nodes)::bigint
        end as nodes
    from pod
    where bound_ms < $as_of_ms and not (is_lost and coalesce(lost_known_ms < $as_of_ms, true))
    group by cluster, workload_uid, number
),

stay as (
    select
        job.* exclude (bound_from_ms, bound_before_ms),
        size.micro_gpus,
        size.milli_cpus,
        size.nodes,
        case
            when size.micro_gpus is null then ''
            when size.micro_gpus % 1000000 = 0 then (size.micro_gpus // 1000000)::varchar
            else (size.micro_gpus / 1000000)::varchar
        end as gpu_count,
        job.start_ms - job.submitted_ms as waited_ms,
        job.start_ms >= $window_start_ms as starts,
        coalesce(job.end_ms >= $window_start_ms, true) as runs,
        coalesce(job.end_ms between $window_start_ms and $as_of_ms - 1, false) as ends,
        greatest(job.start_ms, $window_start_ms) as from_ms,
        least(coalesce(job.end_ms, $as_of_ms), $as_of_ms) as until_ms
    from job
    left join size
        on job.cluster = size.cluster
        and job.workload_uid = size.workload_uid
        and job.number = size.number
)"""

JOBS: Final = f"""\
-- One row per combination of dimensions: jobs, and waits in milliseconds booked on the start, of the window
-- up to $as_of_ms. stretched: node-milliseconds of jobs that ended, each times its expansion factor;
-- weight: without it; unweighted: such jobs of which nobody tells the nodes.
{_STAYS},

told as (
    select
        *,
        make_timestamp(submitted_ms * 1000) as submitted_at,
        make_timestamp(start_ms * 1000) as start_at,
        submitted_ms >= $window_start_ms as is_submitted,
        ends and end_ms > start_ms as is_weighed,
        nodes::hugeint * greatest(until_ms - from_ms, 0) as node_ms
    from stay
)

select
    {_LABELS},
    gpu_count,
    count_if(runs) as running,
    count_if(ends) as ended,
    count_if(starts) as started,
    count_if(is_submitted and date_trunc('day', start_at) = date_trunc('day', submitted_at))
        as submitted_by_day,
    count_if(is_submitted and date_trunc('month', start_at) = date_trunc('month', submitted_at))
        as submitted_by_month,
    coalesce(sum(waited_ms) filter (where starts), 0) as wait_ms,
    coalesce(sum(waited_ms::hugeint * waited_ms) filter (where starts), 0) as squared_wait,
    coalesce(sum(node_ms) filter (where is_weighed), 0) as weight,
    coalesce(
        sum(node_ms + node_ms * waited_ms // nullif(end_ms - start_ms, 0)) filter (where is_weighed), 0
    ) as stretched,
    count_if(is_weighed and nodes is null) as unweighted
from told
group by {_LABELS}, gpu_count
"""  # noqa: S608 (ours)

# Squares are of thousandths, and of the months into which a stay is cut: so Open XDMoD adds them up.
USED: Final = f"""\
-- One row per combination of dimensions and resource: its milliseconds in the window up to $as_of_ms, in
-- parts of one (amount); their squares month by month, in thousandths at most; amount times the milli-CPUs of
-- the job (by_size); and how many jobs ran of which nobody tells the count, or the CPUs.
{_STAYS},

month as (
    select
        cluster,
        workload_uid,
        number,
        unnest(generate_series(
            date_trunc('month', make_timestamp(from_ms * 1000)),
            make_timestamp(until_ms * 1000),
            interval 1 month
        )) as start_at
    from stay
    where from_ms < until_ms
),

squared as (
    select
        stay.cluster,
        stay.workload_uid,
        stay.number,
        sum(
            greatest(
                least(stay.until_ms, epoch_ms(month.start_at + interval 1 month))
                - greatest(stay.from_ms, epoch_ms(month.start_at)), 0
            )::hugeint ** 2
        )::hugeint as squared_ms
    from month
    inner join stay
        on month.cluster = stay.cluster
        and month.workload_uid = stay.workload_uid
        and month.number = stay.number
    group by stay.cluster, stay.workload_uid, stay.number
),

kind as (
    select unnest(['wall', 'cpu', 'gpu', 'node']) as resource
),

told as (
    select
        stay.*,
        kind.resource,
        case kind.resource
            when 'wall' then 1
            when 'cpu' then stay.milli_cpus
            when 'gpu' then stay.micro_gpus
            else stay.nodes
        end as parts,
        case kind.resource
            when 'wall' then 1
            when 'cpu' then stay.milli_cpus
            when 'gpu' then stay.micro_gpus // 1000
            else stay.nodes
        end as coarse_parts,
        greatest(stay.until_ms - stay.from_ms, 0)::hugeint as ms,
        coalesce(squared.squared_ms, 0) as squared_ms
    from stay
    cross join kind
    left join squared
        on stay.cluster = squared.cluster
        and stay.workload_uid = squared.workload_uid
        and stay.number = squared.number
)

select
    {_LABELS},
    gpu_count,
    resource,
    count_if(runs) as running,
    count_if(ends) as ended,
    coalesce(sum(ms * parts), 0) as amount,
    coalesce(sum(squared_ms * coarse_parts * coarse_parts), 0) as squared,
    coalesce(sum(ms * parts * milli_cpus), 0) as by_size,
    count_if(runs and parts is null) as unknown,
    count_if(runs and milli_cpus is null) as unsized
from told
group by {_LABELS}, gpu_count, resource
"""  # noqa: S608 (ours)
