-- One row per workload that was ever cut from the facts: up to which fact its lives hold. A workload that
-- was taken over by another keeps its row, so that whatever is derived of lives notices.
create table workload_cut (
    cluster varchar not null,
    workload_uid varchar not null,
    seq bigint not null,
    primary key (cluster, workload_uid)
);
