-- What was read of GPUs, and what is derived of it. Instants are milliseconds since the epoch.
-- GPU-time is micro-GPU times milliseconds, a whole number, so that a sum does not depend on its order.

-- One row per device, instant, pod that was named on it and source. Append-only; a reading without a
-- value (a blank, or a field that was left out) has a null there, never 0. A device is the GPU's UUID,
-- for a MIG instance `<UUID>/<instance id>`. micro_gpus is the device's part of a card. shares: copies
-- of the series that this pod has on a shared device, pod_shares: on the whole node; 0 without copies.
-- per_process: activity and memory are the pod's own on a shared device.
create table gpu_sample (
    cluster varchar not null,
    source varchar not null,
    node varchar not null,
    device varchar not null,
    gpu_model varchar not null,
    namespace varchar not null,
    pod varchar not null,
    pod_uid varchar not null,
    shares bigint not null,
    pod_shares bigint not null,
    per_process boolean not null,
    at_ms bigint not null,
    step_ms bigint not null,
    activity double,
    engine boolean not null,
    memory_mib double,
    memory_total_mib double,
    micro_gpus bigint,
    seq bigint not null
);

-- One row per source of samples: what was read up to which instant, and how it went. A reading may go well
-- and give nothing: first_sample_ms and last_sample_ms are of the samples themselves, null before any.
create table gpu_sample_mark (
    cluster varchar not null,
    source varchar not null,
    read_until_ms bigint not null,
    seen_ms bigint not null,
    last_error varchar not null,
    first_sample_ms bigint,
    last_sample_ms bigint,
    primary key (cluster, source)
);

-- One row per device of a pod and stretch of one level, cut at hours; neighbours of one level may touch.
-- level: high, low, resident (low with much of the memory in use), shared (more than one pod on it and
-- nobody knows whose the activity is). No row: nothing was seen.
create table activity_span (
    cluster varchar not null,
    workload_uid varchar not null,
    pod_uid varchar not null,
    device varchar not null,
    micro_gpus bigint not null,
    start_ms bigint not null,
    end_ms bigint not null,
    level varchar not null
);

-- One row per device, hour and pod on it; pod_uid '' is the part that no known pod held.
-- seen: GPU-time for which the device's activity is known; active: activity summed over it. own_seen and
-- own_active: the same of what is known to be the pod's own. memory_seen, memory_used likewise.
create table gpu_hour (
    cluster varchar not null,
    node varchar not null,
    device varchar not null,
    gpu_model varchar not null,
    pod_uid varchar not null,
    workload_uid varchar not null,
    hour_ms bigint not null,
    seen bigint not null,
    active bigint not null,
    own_seen bigint not null,
    own_active bigint not null,
    memory_seen bigint not null,
    memory_used bigint not null
);

-- One row per pod's stay as samples were laid on it; a stay that looks different now is laid anew.
create table activity_holding (
    cluster varchar not null,
    workload_uid varchar not null,
    pod_uid varchar not null,
    node varchar not null,
    namespace varchar not null,
    pod_name varchar not null,
    micro_gpus bigint,
    bound_ms bigint not null,
    released_ms bigint
);

-- One row per workload whose activity was ever derived: by which refresh of the activity it was last made
-- anew. What is derived of activity notices by it, as of lives by workload_cut.
create table activity_cut (
    cluster varchar not null,
    workload_uid varchar not null,
    seq bigint not null,
    primary key (cluster, workload_uid)
);

-- noqa: disable=LT02,RF03,ST03
-- (A macro's body stands at the margin, as a view's does; its parameters look like columns, and a table
-- that is passed on by its name looks unused.)

-- One row per stay of a pod on its node, with the name by which a device's series call it.
create view pod_stay as
select
    holding.cluster,
    holding.workload_uid,
    holding.pod_uid,
    holding.node,
    workload.namespace,
    holding.pod_name,
    holding.micro_gpus,
    holding.bound_ms,
    holding.released_ms
from holding
inner join workload
    on holding.cluster = workload.cluster and holding.workload_uid = workload.workload_uid
where holding.micro_gpus is null or holding.micro_gpus > 0;

-- The steps from samples to hours, each a macro. They take the tables of the steps before by name: a fold
-- keeps those in temporary tables for both of its results, a question in its query. In between, devices
-- and pods are numbers: to sort and group by their names takes three times as long.

-- One row per set of samples read in [first_ms, until_ms) that differ by instant and values only.
create macro gpu_series(first_ms, until_ms) as table
with told as (
    select distinct
        cluster, node, device, namespace, pod, pod_uid, gpu_model, shares, pod_shares, per_process,
        engine, micro_gpus
    from gpu_sample
    where at_ms >= first_ms and at_ms < until_ms
)

select
    *,
    row_number() over (
        order by
            cluster, node, device, namespace, pod, pod_uid, gpu_model, shares, pod_shares, per_process,
            engine, micro_gpus
    )::integer as series_no,
    dense_rank() over (order by cluster, node, device)::integer as device_no
from told;

-- One row per series and stay of a pod that it may be of; micro_gpus is the pod's share of the device.
create macro gpu_part(series_table) as table
with held as (
    select
        series.series_no,
        series.device_no,
        series.micro_gpus as device_micro_gpus,
        series.shares,
        series.per_process,
        pod_stay.workload_uid,
        pod_stay.pod_uid,
        pod_stay.bound_ms,
        pod_stay.released_ms,
        case
            when pod_stay.micro_gpus is null then series.micro_gpus
            when series.pod_shares > 0 and series.device not like '%/%'
                then least(
                    series.micro_gpus, pod_stay.micro_gpus * series.shares // series.pod_shares
                )
            else least(series.micro_gpus, pod_stay.micro_gpus)
        end as micro_gpus
    from query_table(series_table) as series
    inner join pod_stay
        on series.cluster = pod_stay.cluster
        and series.node = pod_stay.node
        and series.namespace = pod_stay.namespace
        and series.pod = pod_stay.pod_name
        and (series.pod_uid = '' or series.pod_uid = pod_stay.pod_uid)
    where
        series.pod != ''
        and (pod_stay.released_ms is null or pod_stay.bound_ms < pod_stay.released_ms)
)

select
    *,
    row_number() over (
        order by series_no, workload_uid, pod_uid, bound_ms, released_ms, micro_gpus
    )::integer as part_no,
    dense_rank() over (order by pod_uid)::integer as pod_no
from held
where micro_gpus is not null;

-- One row per device, instant and pod named on it, of what was read in [first_ms, until_ms): it stands
-- until the next reading of the device, or for one step where that is more than 1.5 steps away. What
-- several sources read of one instant counts once: the known before the unknown, the profiling field
-- before the driver's, then the higher. alone: nothing else was read of the device at that instant.
-- copies: pods that have copies of a shared device's series; device_activity: all of the device's, where
-- activity may be one process's.
create macro gpu_reading(series_table, first_ms, until_ms) as table
with ordered as (
    select
        series.series_no,
        series.device_no,
        gpu_sample.at_ms,
        gpu_sample.step_ms,
        gpu_sample.activity,
        gpu_sample.memory_mib,
        gpu_sample.memory_total_mib,
        lead(gpu_sample.at_ms) over of_device as following_ms,
        lag(gpu_sample.at_ms) over of_device as before_ms
    from gpu_sample
    inner join query_table(series_table) as series
        on gpu_sample.cluster = series.cluster
        and gpu_sample.node = series.node
        and gpu_sample.device = series.device
        and gpu_sample.namespace = series.namespace
        and gpu_sample.pod = series.pod
        and gpu_sample.pod_uid = series.pod_uid
        and gpu_sample.gpu_model = series.gpu_model
        and gpu_sample.shares = series.shares
        and gpu_sample.pod_shares = series.pod_shares
        and gpu_sample.per_process = series.per_process
        and gpu_sample.engine = series.engine
        and gpu_sample.micro_gpus is not distinct from series.micro_gpus
    where gpu_sample.at_ms >= first_ms and gpu_sample.at_ms < until_ms
    window of_device as (partition by series.device_no order by gpu_sample.at_ms)
),

several as (
    select
        ordered.*,
        series.* exclude (series_no, device_no, cluster, node, device),
        nullif(
            max(ordered.following_ms) over (partition by ordered.device_no, ordered.at_ms), ordered.at_ms
        ) as next_ms
    from ordered
    inner join query_table(series_table) as series on ordered.series_no = series.series_no
    where ordered.following_ms = ordered.at_ms or ordered.before_ms = ordered.at_ms
),

chosen as (
    select *
    from several
    qualify row_number() over (
        partition by device_no, at_ms, namespace, pod
        order by
            activity is not null desc, engine desc, activity desc, memory_mib desc nulls last, shares desc,
            pod_shares desc, per_process desc, step_ms asc, pod_uid desc, gpu_model desc,
            micro_gpus desc nulls last, memory_total_mib desc nulls last
    ) = 1
),

reading as (
    select
        series_no,
        at_ms,
        step_ms,
        following_ms as next_ms,
        activity,
        activity as device_activity,
        memory_mib,
        memory_total_mib,
        true as alone,
        1 as copies
    from ordered
    where following_ms is distinct from at_ms and before_ms is distinct from at_ms
    union all
    select
        series_no,
        at_ms,
        step_ms,
        next_ms,
        activity,
        case
            when bool_or(per_process) over at_once
                then max(case when not per_process then activity end) over at_once
            else max(activity) over at_once
        end as device_activity,
        memory_mib,
        memory_total_mib,
        false as alone,
        count(case when pod != '' and shares > 0 then 1 end) over at_once as copies
    from chosen
    window at_once as (partition by device_no, at_ms)
)

select
    series_no,
    at_ms,
    case
        when next_ms - at_ms <= step_ms + step_ms // 2 then next_ms
        else at_ms + step_ms
    end as end_ms,
    activity,
    device_activity,
    memory_mib / nullif(memory_total_mib, 0) as memory_ratio,
    alone,
    copies
from reading;

-- What was read, as stretches: one row per device and stretch (part_no 0, all of the device), and one per
-- pod on it (its share of it, while it held it). own: the values are known to be the pod's own, because
-- nobody else was on the device or the exporter tells them apart.
create macro gpu_piece(series_table, part_table, reading_table) as table
select
    series.series_no,
    0 as part_no,
    series.micro_gpus,
    reading.at_ms as start_ms,
    reading.end_ms,
    reading.activity,
    reading.device_activity,
    reading.memory_ratio,
    false as own
from query_table(reading_table) as reading
inner join query_table(series_table) as series on reading.series_no = series.series_no
where reading.alone and series.micro_gpus is not null
union all
select
    max_by(series.series_no, series.gpu_model) as series_no,
    0 as part_no,
    max(series.micro_gpus) as micro_gpus,
    reading.at_ms as start_ms,
    max(reading.end_ms) as end_ms,
    max(reading.device_activity) as activity,
    max(reading.device_activity) as device_activity,
    max(reading.memory_ratio) as memory_ratio,
    false as own
from query_table(reading_table) as reading
inner join query_table(series_table) as series on reading.series_no = series.series_no
where not reading.alone and series.micro_gpus is not null
group by series.device_no, reading.at_ms
union all
select
    part.series_no,
    part.part_no,
    part.micro_gpus,
    greatest(reading.at_ms, part.bound_ms) as start_ms,
    least(reading.end_ms, coalesce(part.released_ms, reading.end_ms)) as end_ms,
    reading.activity,
    reading.device_activity,
    reading.memory_ratio,
    part.per_process
    or part.micro_gpus = part.device_micro_gpus
    or (part.shares > 0 and reading.copies = 1) as own
from query_table(reading_table) as reading
inner join query_table(part_table) as part
    on reading.series_no = part.series_no
    and reading.end_ms > part.bound_ms
    and (part.released_ms is null or reading.at_ms < part.released_ms);
