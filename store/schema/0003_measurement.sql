-- What the product said at the time: one row per metric, instant and series.
create table measurement (
    metric varchar not null,
    as_of_ms bigint not null,
    labels varchar not null,
    value double,
    lower_bound boolean not null,
    few boolean not null,
    undefined_because varchar not null
);
