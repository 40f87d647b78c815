"""What GPU-time was for, workload by workload, over their lives until an instant, as the metrics count it."""

from typing import Final

from analytics.wastage.asked import TOLD
from analytics.wastage.ratios import SELF_INFLICTED

WORKLOAD_TIME: Final = f"""\
-- One row per workload of $uids and cause: GPU-time held in the window, as in `GPU_TIME`.
{TOLD}

select
    cluster,
    workload_uid,
    told_cause as cause,
    told_may_be as may_be,
    charged,
    restart,
    coalesce(sum(micro_gpus::hugeint * ms), 0) as amount,
    coalesce(sum(ms) filter (where micro_gpus is null), 0) as unmeasured_ms
from told
where workload_uid in (select unnest($uids::varchar[]))
group by cluster, workload_uid, told_cause, told_may_be, charged, restart
"""  # noqa: S608 (ours)

# To order a list by: of many workloads nobody wants the bill of each.
WASTED_AMOUNT: Final = f"""\
-- One row per workload whose holder wasted GPU-time in the window: how much, as `self_inflicted` counts it.
{TOLD}

select
    cluster,
    workload_uid as uid,
    sum(micro_gpus::double * ms) as wasted_amount
from told
where charged and told_cause in ({", ".join(f"'{cause}'" for cause in SELF_INFLICTED)})
group by cluster, workload_uid
"""  # noqa: S608 (ours)
