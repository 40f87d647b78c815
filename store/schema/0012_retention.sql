-- Up to when the books of a cluster are closed: what is older was dropped, so nothing of it is made anew.
create table closed_until (
    cluster varchar not null,
    until_ms bigint not null,
    primary key (cluster)
);
