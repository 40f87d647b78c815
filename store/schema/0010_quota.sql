-- What quota proposals rest on, the proposals, and every change of one. Nothing here writes to a cluster.

-- One row per pool, holder and week: what was measured of it, and what its quota was; whole GPUs.
-- ratio is null where it is undefined, with the reason. holder '' is the cohort itself. good_weeks: good
-- weeks in a row, this one included.
create table quota_week (
    cluster varchar not null,
    pool varchar not null,
    holder varchar not null,
    week varchar not null,
    start_ms bigint not null,
    end_ms bigint not null,
    agreed bigint not null,
    live bigint not null,
    ratio double,
    ratio_because varchar not null,
    debt_gpu_hours double not null,
    gpu_hours double not null,
    coverage double not null,
    good_weeks bigint not null,
    primary key (cluster, pool, holder, week)
);

-- One row per proposal: the quota is to go from base + before to base + after, whole GPUs; base is what a
-- cohort has of its own. evidence and funding are JSON, teams a comma list; the object says the quota.
create table proposal (
    cluster varchar not null,
    proposal_id varchar not null,
    pool varchar not null,
    holder varchar not null,
    teams varchar not null,
    week varchar not null,
    kind varchar not null,
    before bigint not null,
    after bigint not null,
    base bigint not null,
    unit bigint not null,
    made_ms bigint not null,
    expires_ms bigint not null,
    because varchar not null,
    evidence varchar not null,
    funding varchar not null,
    from_free bigint not null,
    object_kind varchar not null,
    object_uid varchar not null,
    flavor varchar not null,
    resource varchar not null,
    state varchar not null,
    primary key (cluster, proposal_id)
);

-- One row per change of a proposal's state; the first says that it was made.
create table proposal_audit (
    cluster varchar not null,
    proposal_id varchar not null,
    at_ms bigint not null,
    from_state varchar not null,
    to_state varchar not null,
    who varchar not null,
    note varchar not null
);
