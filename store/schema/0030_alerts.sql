-- Alerts as the product evaluates them itself, whether or not it posts them.

-- One row per alert that is pending, fires, or resolved a while ago. Labels, as JSON with sorted names, are
-- its identity. Instants are those of the data; starts_ms and ends_ms, by the machine's clock, are what an
-- Alertmanager is told.
create table alert_state (
    labels varchar primary key,
    annotations varchar not null,
    state varchar not null,
    active_ms bigint not null,
    heard_ms bigint not null,
    breaches boolean not null,
    fired_ms bigint,
    fine_ms bigint,
    resolved_ms bigint,
    starts_ms bigint,
    ends_ms bigint,
    metric varchar not null,
    value double,
    worst_value double,
    threshold double,
    coverage double,
    because varchar not null
);

-- One row per time that an alert fired, [fired_ms, resolved_ms); resolved_ms is null while it does. value is
-- that at which it fired, worst_value the one farthest beyond the threshold, null while it fires.
create table alert_firing (
    labels varchar not null,
    annotations varchar not null,
    active_ms bigint not null,
    fired_ms bigint not null,
    resolved_ms bigint,
    metric varchar not null,
    value double,
    worst_value double,
    threshold double,
    coverage double,
    because varchar not null
);

-- At most one row: the instant of the data for which alerts were evaluated last.
create table alert_mark (
    as_of_ms bigint not null
);
