-- Whether a workload waits, or waited, after a placement: it has such a span. Of most work nobody then looks
-- through spans for it: docs/adr/0071.
alter table workload add column waits_again boolean default false;
alter table workload alter column waits_again set not null;
update workload
set waits_again = true
where exists (
    select 1 from span
    where
        span.cluster = workload.cluster
        and span.workload_uid = workload.workload_uid
        and span.open_until_ms = workload.open_until_ms
        and not span.first_wait
        and span.state in ('queued', 'checking', 'placing')
);
