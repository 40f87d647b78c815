-- The books of fairness. Quantities are micro-GPU, debts GPU-hours. Every row holds in
-- [start_ms, until_ms); until_ms is the largest bigint while it lasts, and then end_ms is null.

-- One row per workload and stretch of what it adds to an entity of a pool: GPUs that it holds on a node,
-- or asks (node ''). demand includes what is held. pool '' is held by nobody that counts. resource
-- names what it asks, weight_milli is that of its local queue.
create table demand_step (
    cluster varchar not null,
    workload_uid varchar not null,
    at_ms bigint not null,
    until_ms bigint not null,
    pool varchar not null,
    entity varchar not null,
    team varchar not null,
    node varchar not null,
    resource varchar not null,
    weight_milli bigint not null,
    demand bigint not null,
    held bigint not null
);

-- One row per pool, entity and stretch in which nothing of it changes; team is '' where several share
-- it. A quota larger than a bigint holds is the largest bigint.
create table share_span (
    cluster varchar not null,
    pool varchar not null,
    entity varchar not null,
    team varchar not null,
    gpu_model varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    until_ms bigint not null,
    quota bigint not null,
    demand bigint not null,
    held bigint not null,
    entitled bigint not null,
    lent bigint not null,
    borrowed bigint not null,
    over_quota bigint not null,
    opening_debt double not null
);

-- One row per pool, entity, team and stretch: the team's part of the entity.
create table team_share_span (
    cluster varchar not null,
    pool varchar not null,
    entity varchar not null,
    team varchar not null,
    gpu_model varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    until_ms bigint not null,
    demand bigint not null,
    held bigint not null,
    entitled bigint not null,
    opening_debt double not null
);

-- One row per pool and stretch. error_ratio and jain are null where they are undefined, with the reason.
create table pool_span (
    cluster varchar not null,
    pool varchar not null,
    gpu_model varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    until_ms bigint not null,
    capacity bigint not null,
    without_quota bigint not null,
    error_ratio double,
    jain double,
    undefined_because varchar not null,
    from_unassigned bigint not null
);

-- One row per pool, queue (whoever holds the quota), team and stretch.
create view team_share as
select
    cluster,
    pool,
    entity as queue,
    team,
    gpu_model,
    start_ms,
    until_ms,
    demand,
    held,
    entitled,
    opening_debt
from team_share_span;

-- One row per pool, queue (whoever holds the quota) and stretch.
create view entity_share as
select
    cluster,
    pool,
    entity as queue,
    team,
    gpu_model,
    start_ms,
    until_ms,
    quota,
    lent,
    borrowed,
    over_quota
from share_span;

-- One row per pool and stretch.
create view pool_state as
select
    cluster,
    pool,
    gpu_model,
    start_ms,
    until_ms,
    capacity,
    without_quota,
    error_ratio,
    jain,
    undefined_because
from pool_span;
