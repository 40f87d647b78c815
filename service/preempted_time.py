"""Running time that preemptions lost, as money looks at it: whose it was, and who took its place."""

from collections.abc import Sequence
from typing import Any, Final

from analytics.chargeback.distribution import Pool
from analytics.chargeback.extras import Lost
from analytics.chargeback.stays import Owner
from domain.calendar import Period
from store.embedded import Store

# One row per owner, model, day on which the loss became known, and team of the preemptor. A preemption ends
# an attempt, so the attempt tells which one it was.
_LOST: Final = """
with day as (
    select
        unnest($labels::varchar[]) as label,
        unnest($starts::bigint[]) as start_ms,
        unnest($ends::bigint[]) as end_ms
),

took as (
    select eviction.cluster, eviction.workload_uid, eviction.attempt, max(preemptor.team) as team
    from eviction
    inner join member
        on eviction.cluster = member.cluster and eviction.preemptor_uid = member.object_uid
    inner join workload as preemptor
        on member.cluster = preemptor.cluster and member.workload_uid = preemptor.workload_uid
    where eviction.preempted
    group by eviction.cluster, eviction.workload_uid, eviction.attempt
)

select
    day.label,
    gpu_time.cluster,
    gpu_time.team,
    workload.project,
    gpu_time.user_name,
    gpu_time.queue,
    gpu_time.gpu_model,
    coalesce(took.team, '') as preemptor,
    sum(gpu_time.micro_gpus::hugeint * (gpu_time.end_ms - gpu_time.start_ms)) as micro_gpu_ms
from gpu_time
inner join workload
    on gpu_time.cluster = workload.cluster and gpu_time.workload_uid = workload.workload_uid
inner join day
    on coalesce(gpu_time.known_ms, gpu_time.end_ms) > day.start_ms
    and coalesce(gpu_time.known_ms, gpu_time.end_ms) <= day.end_ms
left join took
    on gpu_time.cluster = took.cluster
    and gpu_time.workload_uid = took.workload_uid
    and gpu_time.attempt = took.attempt
where gpu_time.cause = 'preempted_lost' and gpu_time.micro_gpus > 0 and gpu_time.end_ms is not null
group by all
order by all
"""


def lost_time(store: Store, days: Sequence[Period]) -> list[Lost]:
    """What was lost to preemptions, on the day on which that became known."""
    asked = {
        "labels": [day.label for day in days],
        "starts": [day.start_ms for day in days],
        "ends": [day.end_ms for day in days],
    }
    rows: list[dict[str, Any]] = store.rows(_LOST, asked)
    return [
        Lost(
            pool=Pool(cluster=row["cluster"], gpu_model=row["gpu_model"], day=row["label"]),
            owner=Owner(team=row["team"], project=row["project"], user=row["user_name"], queue=row["queue"]),
            preemptor=row["preemptor"],
            micro_gpu_ms=int(row["micro_gpu_ms"]),
        )
        for row in rows
    ]
