-- When each source was observed. Instants are milliseconds since the epoch, UTC.

-- One row per stretch of sights of a source without a longer silence between them: of a kind of objects
-- (source and node are empty), or of a source of GPU metrics (kind 'GPU metrics') on a node.
-- resumed: a watch went on, so that nothing of the silence before was missed. Few rows: a stretch grows.
create table observed_stretch (
    cluster varchar not null,
    kind varchar not null,
    source varchar not null,
    node varchar not null,
    start_ms bigint not null,
    end_ms bigint not null,
    resumed boolean not null
);

-- Of the time before this table existed: each kind from its first fact on, or its cluster's, to its mark.
insert into observed_stretch by name
with first_fact as (
    select cluster, kind, min(observed_ms) as first_ms
    from (
        select cluster, kind, observed_ms from transition
        union all
        select cluster, kind, observed_ms from description
        union all
        select cluster, 'Event' as kind, observed_ms from event_sighting
    ) as fact
    group by cluster, kind
)

select
    source_mark.cluster,
    source_mark.kind,
    '' as source,
    '' as node,
    least(
        coalesce(
            (
                select first_fact.first_ms from first_fact
                where first_fact.cluster = source_mark.cluster and first_fact.kind = source_mark.kind
            ),
            (
                select min(first_fact.first_ms) from first_fact
                where first_fact.cluster = source_mark.cluster
            ),
            source_mark.seen_ms
        ),
        source_mark.seen_ms
    ) as start_ms,
    source_mark.seen_ms as end_ms,
    false as resumed
from source_mark
where source_mark.seen_ms > 0;

-- Of samples each reading stands for one and a half of its steps.
insert into observed_stretch by name
with reading as (
    select distinct cluster, source, node, at_ms, at_ms + step_ms * 3 // 2 as end_ms
    from gpu_sample
),

marked as (
    select
        *,
        at_ms > coalesce(
            max(end_ms) over (
                partition by cluster, source, node order by at_ms, end_ms
                rows between unbounded preceding and 1 preceding
            ),
            -1
        ) as begins
    from reading
),

numbered as (
    select
        *,
        count_if(begins) over (
            partition by cluster, source, node order by at_ms, end_ms rows unbounded preceding
        ) as number
    from marked
)

select
    cluster,
    'GPU metrics' as kind,
    source,
    node,
    min(at_ms) as start_ms,
    max(end_ms) as end_ms,
    false as resumed
from numbered
group by cluster, source, node, number;
