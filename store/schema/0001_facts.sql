-- Facts: append-only, no primary keys (they would cost twice the CPU and three times the file).
-- That a fact is stored once follows from object_state and source_mark, in the same transaction.
-- Instants are milliseconds since the epoch, UTC.

create table transition (
    cluster varchar not null,
    uid varchar not null,
    kind varchar not null,
    moment varchar not null,
    subject varchar not null,
    state varchar not null,
    reason varchar not null,
    detail varchar not null,
    amount bigint,
    at_ms bigint not null,
    earliest_ms bigint,
    observed_ms bigint not null,
    seq bigint not null
);

create table description (
    cluster varchar not null,
    uid varchar not null,
    kind varchar not null,
    namespace varchar not null,
    name varchar not null,
    from_ms bigint not null,
    earliest_ms bigint,
    observed_ms bigint not null,
    body varchar not null,
    seq bigint not null
);

create table event_sighting (
    cluster varchar not null,
    uid varchar not null,
    resource_version varchar not null,
    event_type varchar not null,
    reason varchar not null,
    note varchar not null,
    component varchar not null,
    regarding_kind varchar not null,
    regarding_uid varchar not null,
    regarding_namespace varchar not null,
    regarding_name varchar not null,
    related_uid varchar not null,
    first_ms bigint not null,
    last_ms bigint not null,
    count bigint not null,
    observed_ms bigint not null,
    seq bigint not null
);

create table set_aside (
    cluster varchar not null,
    source varchar not null,
    because varchar not null,
    sample varchar not null,
    count bigint not null,
    observed_ms bigint not null
);

-- One row per object: its newest reading.
create table object_state (
    cluster varchar not null,
    uid varchar not null,
    kind varchar not null,
    namespace varchar not null,
    name varchar not null,
    resource_version varchar not null,
    seen_ms bigint not null,
    gone_ms bigint,
    primary key (cluster, uid)
);

-- One row per cluster and kind: where reading resumes.
create table source_mark (
    cluster varchar not null,
    kind varchar not null,
    resource_version varchar not null,
    epoch bigint not null,
    seen_ms bigint not null,
    cluster_uid varchar not null,
    last_error varchar not null,
    restarts bigint not null,
    primary key (cluster, kind)
);

-- One row per derived job: facts with seq up to here are in its result.
create table watermark (
    cluster varchar not null,
    job varchar not null,
    seq bigint not null,
    primary key (cluster, job)
);
