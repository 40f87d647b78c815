-- Months that were closed, and what was learnt of them later: never changed, but where a correction is
-- booked, and that once. And what a GPU-hour of each node costs.

-- One row per closed month: the statement's bytes, their fingerprint, and who closed it.
create table closed_month (
    month varchar not null,
    sha256 varchar not null,
    closed_ms bigint not null,
    closed_by varchar not null,
    as_of_ms bigint not null,
    reason varchar not null,
    start_ms bigint not null,
    end_ms bigint not null,
    content blob not null,
    primary key (month)
);

-- One row per correction of a closed month, numbered from 1: the lines that turn what was said before into
-- what was known then. booked_in is the month whose statement has it; empty while that is open.
create table month_correction (
    month varchar not null,
    number bigint not null,
    found_ms bigint not null,
    content blob not null,
    booked_in varchar not null,
    primary key (month, number)
);

-- One row per closed month: what its figures rest on, as it was when it was last settled anew.
create table month_basis (
    month varchar not null,
    basis varchar not null,
    checked_ms bigint not null,
    primary key (month)
);

-- One row per node and stretch of one effective price of a GPU-hour, in billionths of the currency.
create table node_price (
    cluster varchar not null,
    node varchar not null,
    start_ms bigint not null,
    end_ms bigint,
    nano_price bigint not null
);
