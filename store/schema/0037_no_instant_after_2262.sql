-- A store may hold instants after the year 2262, which nobody accepts any more: nanoseconds since the epoch
-- do not reach so far, and a GPU held until then is more GPU-time than 64 bits. What tells of one is set
-- aside and counted; marks go back to the latest instant that makes sense, and the books are written anew.

-- One row per fact, state or count with such an instant, and where to count it.
create temp table beyond as
select cluster, kind as source, 'transition' as from_table, observed_ms from transition
where greatest(at_ms, observed_ms, coalesce(earliest_ms, 0)) > 9223372036854
union all
select cluster, kind as source, 'description' as from_table, observed_ms from description
where greatest(from_ms, observed_ms, coalesce(earliest_ms, 0)) > 9223372036854
union all
select cluster, 'Event' as source, 'event_sighting' as from_table, observed_ms from event_sighting
where greatest(first_ms, last_ms, observed_ms) > 9223372036854
union all
select cluster, source, 'gpu_sample' as from_table, at_ms as observed_ms from gpu_sample
where at_ms > 9223372036854
union all
select cluster, queue as source, 'queue_state' as from_table, end_ms as observed_ms from queue_state
where greatest(start_ms, end_ms) > 9223372036854
union all
select cluster, queue as source, 'queue_position' as from_table, at_ms as observed_ms from queue_position
where at_ms > 9223372036854
union all
select cluster, kind as source, 'source_mark' as from_table, seen_ms as observed_ms from source_mark
where seen_ms > 9223372036854
union all
select cluster, source, 'gpu_sample_mark' as from_table, seen_ms as observed_ms from gpu_sample_mark
where greatest(read_until_ms, seen_ms, coalesce(last_sample_ms, 0)) > 9223372036854
union all
select cluster, kind as source, 'object_state' as from_table, seen_ms as observed_ms from object_state
where greatest(seen_ms, coalesce(gone_ms, 0)) > 9223372036854;

delete from transition
where greatest(at_ms, observed_ms, coalesce(earliest_ms, 0)) > 9223372036854;
delete from description
where greatest(from_ms, observed_ms, coalesce(earliest_ms, 0)) > 9223372036854;
delete from event_sighting
where greatest(first_ms, last_ms, observed_ms) > 9223372036854;
delete from gpu_sample
where at_ms > 9223372036854;
delete from queue_state
where greatest(start_ms, end_ms) > 9223372036854;
delete from queue_position
where at_ms > 9223372036854;
delete from measurement
where as_of_ms > 9223372036854;
delete from gpu_hour
where hour_ms > 9223372036854;
delete from activity_span
where start_ms > 9223372036854;
delete from observed_stretch
where start_ms > 9223372036854;
update observed_stretch
set end_ms = start_ms
where end_ms > 9223372036854;

-- One row per cluster: the latest instant at which something of it was observed, of those that make sense.
create temp table observed_last as
select cluster, max(observed_ms) as at_ms
from (
    select cluster, observed_ms from transition
    union all
    select cluster, observed_ms from description
    union all
    select cluster, observed_ms from event_sighting
    union all
    select cluster, at_ms as observed_ms from gpu_sample
    union all
    select cluster, start_ms as observed_ms from queue_state
) as sane
group by cluster;

-- A kind that is marked so is listed again from its beginning: what it had meanwhile is unknown.
update source_mark
set
    resource_version = '', seen_ms = coalesce(
        (
            select observed_last.at_ms from observed_last
            where observed_last.cluster = source_mark.cluster
        ), 0
    )
where seen_ms > 9223372036854;
update object_state
set
    seen_ms = coalesce(
        (
            select observed_last.at_ms from observed_last
            where observed_last.cluster = object_state.cluster
        ), 0
    )
where seen_ms > 9223372036854;
update object_state
set gone_ms = seen_ms
where gone_ms > 9223372036854;
update gpu_sample_mark
set
    read_until_ms = least(read_until_ms, coalesce(sane.at_ms + 1, 0)),
    seen_ms = least(seen_ms, coalesce(sane.at_ms + 1, 0)),
    last_sample_ms = sane.at_ms
from (
    select mark.cluster, mark.source, max(gpu_sample.at_ms) as at_ms
    from gpu_sample_mark as mark
    left join gpu_sample on mark.cluster = gpu_sample.cluster and mark.source = gpu_sample.source
    group by mark.cluster, mark.source
) as sane
where
    gpu_sample_mark.cluster = sane.cluster
    and gpu_sample_mark.source = sane.source
    and greatest(
        gpu_sample_mark.read_until_ms, gpu_sample_mark.seen_ms, coalesce(gpu_sample_mark.last_sample_ms, 0)
    ) > 9223372036854;
update set_aside
set
    observed_ms = coalesce(
        (
            select observed_last.at_ms from observed_last
            where observed_last.cluster = set_aside.cluster
        ), 0
    )
where observed_ms > 9223372036854;

insert into set_aside
select
    beyond.cluster,
    beyond.source,
    'an instant after the year 2262' as because,
    'table ' || beyond.from_table as sample,
    count(*) as count,
    coalesce(any_value(observed_last.at_ms), 0) as observed_ms
from beyond
left join observed_last on beyond.cluster = observed_last.cluster
group by beyond.cluster, beyond.source, beyond.from_table;

-- Everything is derived anew of what is left; and where MultiKueue made copies, their demand counts once.
delete from watermark
where cluster in (select cluster from beyond);
delete from watermark
where (job = 'lives' or job like 'fairness%') and exists (select 1 from workload_copy);

drop table beyond;
drop table observed_last;
