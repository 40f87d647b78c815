-- The ledger of fairness is swept in parts of time: docs/adr/0069.

-- One row per cluster of which pieces of demand_step are newer than its ledger: from when on it is swept.
-- Before since_ms the ledger holds; its last stretches are those that held then.
create table unswept (
    cluster varchar not null,
    since_ms bigint not null
);
