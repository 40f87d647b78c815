-- One row per closed month of which retention dropped facts: what its figures rest on since, and how much is
-- held in it by what is left, micro-GPU-milliseconds; both as they were when they were looked at last, and
-- until when facts were dropped by then. What changes them is learnt too late for a correction: times counts
-- that, unbooked is by how much more is held. told_in is the month whose close said so; empty while none did.
create table month_left (
    month varchar not null,
    dropped_ms bigint not null,
    basis varchar not null,
    held hugeint not null,
    times bigint not null,
    unbooked hugeint not null,
    told_in varchar not null,
    primary key (month)
);
