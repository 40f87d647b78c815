"""Running time that preemptions lost, as money looks at it: whose it was, and who took its place."""

from collections.abc import Sequence
from typing import Any, Final

from analytics.chargeback.distribution import Pool
from analytics.chargeback.extras import Lost
from analytics.chargeback.stays import Owner
from domain.calendar import Period
from service.model_time import MODELLED
from store.embedded import Store

# One row per owner, model, day on which the loss became known, and team of the preemptor. A preemption ends
# an attempt, so the attempt tells which one it was.
_LOST: Final = f"""
with {MODELLED},

day as (
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
    modelled.cluster,
    modelled.team,
    workload.project,
    modelled.user_name,
    modelled.queue,
    modelled.gpu_model,
    coalesce(took.team, '') as preemptor,
    sum(modelled.micro_gpus::hugeint * (modelled.end_ms - modelled.start_ms)) as micro_gpu_ms
from modelled
inner join workload
    on modelled.cluster = workload.cluster and modelled.workload_uid = workload.workload_uid
inner join day
    on modelled.told_ms > day.start_ms
    and modelled.told_ms <= day.end_ms
left join took
    on modelled.cluster = took.cluster
    and modelled.workload_uid = took.workload_uid
    and modelled.attempt = took.attempt
where modelled.cause = 'preempted_lost' and modelled.micro_gpus is not null and modelled.end_ms is not null
group by all
having micro_gpu_ms <> 0
order by all
"""  # noqa: S608 (text from here)


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
