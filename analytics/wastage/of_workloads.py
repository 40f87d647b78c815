"""What GPU-time was for, workload by workload, over their lives until an instant, as the metrics count it."""

from typing import Final

from analytics.wastage.asked import TOLD, TOLD_OF_WANTED
from analytics.wastage.ratios import SELF_INFLICTED

WORKLOAD_TIME: Final = f"""\
-- One row per workload of $uids and cause: GPU-time held in the window, as in `GPU_TIME`. What copies held
-- is told of their original, unless they are asked for.
with wanted as (
    select unnest($uids::varchar[]) as workload_uid
    union
    select workload_uid from workload_copy where of_workload_uid in (select unnest($uids::varchar[]))
),

{TOLD_OF_WANTED},

owned as (
    select
        told.*,
        coalesce(workload_copy.of_cluster, told.cluster) as owner_cluster,
        coalesce(workload_copy.of_workload_uid, told.workload_uid) as owner_uid
    from told
    left join workload_copy
        on
            told.cluster = workload_copy.cluster
            and told.workload_uid = workload_copy.workload_uid
            and not told.workload_uid in (select unnest($uids::varchar[]))
)

select
    owner_cluster as cluster,
    owner_uid as workload_uid,
    told_cause as cause,
    told_may_be as may_be,
    charged,
    restart,
    coalesce(sum(micro_gpus::hugeint * ms), 0) as amount,
    coalesce(sum(ms) filter (where micro_gpus is null), 0) as unmeasured_ms
from owned
where owner_uid in (select unnest($uids::varchar[]))
group by owner_cluster, owner_uid, told_cause, told_may_be, charged, restart
"""  # noqa: S608 (ours)

# To order a list by: of many workloads nobody wants the bill of each.
WASTED_AMOUNT: Final = f"""\
-- One row per workload whose holder wasted GPU-time in the window: how much, as `self_inflicted` counts it.
{TOLD}

select
    coalesce(workload_copy.of_cluster, told.cluster) as cluster,
    coalesce(workload_copy.of_workload_uid, told.workload_uid) as uid,
    sum(micro_gpus::double * ms) as wasted_amount
from told
left join workload_copy
    on told.cluster = workload_copy.cluster and told.workload_uid = workload_copy.workload_uid
where charged and told_cause in ({", ".join(f"'{cause}'" for cause in SELF_INFLICTED)})
group by all
"""  # noqa: S608 (ours)
