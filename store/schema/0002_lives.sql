-- What facts say of each workload's course. Derived: cut anew from the facts whenever they grow.

create table workload (
    cluster varchar not null,
    workload_uid varchar not null,
    kind varchar not null,
    namespace varchar not null,
    name varchar not null,
    job_uid varchar not null,
    team varchar not null,
    user_name varchar not null,
    project varchar not null,
    queue varchar not null,
    priority_class varchar not null,
    service_class varchar not null,
    gpu_model varchar not null,
    gang_size bigint not null,
    requested_micro_gpus bigint,
    submitted_ms bigint not null,
    first_placed_ms bigint,
    first_running_ms bigint,
    ended_ms bigint,
    ended_earliest_ms bigint,
    outcome varchar not null,
    skewed varchar not null
);

create table span (
    cluster varchar not null,
    workload_uid varchar not null,
    state varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    start_earliest_ms bigint,
    reason varchar not null,
    first_wait boolean not null
);

create table attempt (
    cluster varchar not null,
    workload_uid varchar not null,
    number bigint not null,
    start_ms bigint not null,
    end_ms bigint,
    outcome varchar not null,
    reason varchar not null,
    preempted_by varchar not null,
    source varchar not null
);

create table holding (
    cluster varchar not null,
    workload_uid varchar not null,
    attempt bigint not null,
    pod_uid varchar not null,
    pod_name varchar not null,
    node varchar not null,
    gpu_model varchar not null,
    micro_gpus bigint,
    bound_ms bigint not null,
    bound_earliest_ms bigint,
    bound_source varchar not null,
    started_ms bigint,
    released_ms bigint,
    released_earliest_ms bigint,
    phase varchar not null,
    restarts bigint not null
);

-- One row per stretch in which a main container of a pod ran.
create table run (
    cluster varchar not null,
    workload_uid varchar not null,
    pod_uid varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    exit_code bigint,
    reason varchar not null
);

create table eviction (
    cluster varchar not null,
    workload_uid varchar not null,
    at_ms bigint not null,
    preempted boolean not null,
    reason varchar not null,
    mechanism varchar not null,
    preemptor_uid varchar not null,
    attempt bigint not null,
    missed bigint not null,
    detail varchar not null
);

create table member_wait (
    cluster varchar not null,
    workload_uid varchar not null,
    pod_uid varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    micro_gpus bigint
);

-- One row per workload, flavor and stretch of reserved quota.
create table reservation (
    cluster varchar not null,
    workload_uid varchar not null,
    flavor varchar not null,
    micro_gpus bigint,
    start_ms bigint not null,
    end_ms bigint
);

-- One row per node and stretch of unchanged capacity; pool is the GPU model of the node.
create table node_span (
    cluster varchar not null,
    node varchar not null,
    gpu_model varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    capacity_micro_gpus bigint,
    allocatable_micro_gpus bigint,
    schedulable boolean not null
);

-- One row per queue and stretch in which it exists.
create table queue_span (
    cluster varchar not null,
    queue varchar not null,
    kind varchar not null,
    start_ms bigint not null,
    end_ms bigint
);

-- One row per object that belongs to a workload.
create table member (
    cluster varchar not null,
    workload_uid varchar not null,
    object_uid varchar not null,
    kind varchar not null
);
