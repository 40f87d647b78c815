-- What counters since ever had counted up to an instant, so that a question about now reads what came since:
-- docs/adr/0054.

-- One row per question of a counter, by the digest of its text. body: its rows as of until_ms, as JSON. What
-- is learnt later of workloads that counted by then drops all rows.
create table counted (
    question varchar primary key,
    until_ms bigint not null,
    body varchar not null
);

-- noqa: disable=LT02,RF03
-- (A macro's body stands at the margin, as a view's does; its parameter looks like a column.)

-- One row or more per combination of dimensions, user included, of which a workload had been submitted
-- before as_of_ms: the model of GPUs is '' where it was not placed by then. Who asks leaves users out, and
-- groups what is left: rows that are the same are not looked for twice.
create or replace macro seen_before(as_of_ms) as table
select cluster, queue, service_class, priority_class, team, user_name, gpu_model, gang_size
from dimensions_seen
where since_ms < as_of_ms
union all
select cluster, queue, service_class, priority_class, team, user_name, '' as gpu_model, gang_size
from gpu_workload
where
    gpu_workload.open_until_ms >= as_of_ms
    and gpu_workload.submitted_ms < as_of_ms
    and coalesce(gpu_workload.first_placed_ms >= as_of_ms, true);

-- noqa: enable=all
