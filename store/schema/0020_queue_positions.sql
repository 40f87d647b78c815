-- What Kueue's visibility API tells of the order in its queues. Polled, so it is no stream with versions.

-- One row per change: from at_ms on the workload has so many ahead of it; null: it was not told any more.
create table queue_position (
    cluster varchar not null,
    queue varchar not null,
    namespace varchar not null,
    name varchar not null,
    ahead bigint,
    ahead_in_local_queue bigint,
    at_ms bigint not null
);

-- One row per cluster: until when positions are known (0: never), and what hinders asking now.
create table queue_position_mark (
    cluster varchar primary key,
    seen_ms bigint not null,
    error varchar not null
);
