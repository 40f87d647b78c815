-- What is borrowed of nobody's quota belongs to the figures of a pool.

-- One row per pool and stretch.
create or replace view pool_state as
select
    cluster,
    pool,
    gpu_model,
    start_ms,
    until_ms,
    capacity,
    without_quota,
    from_unassigned,
    error_ratio,
    jain,
    undefined_because
from pool_span;
