"""Quota over time, as money looks at it: who may bear idle capacity, and what was lent, borrowed, unused."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from analytics.chargeback.distribution import UNALLOCATED, Pool
from analytics.chargeback.quota_lines import NO_TEAM, QuotaLine, QuotaTime
from domain.calendar import Period
from domain.window import Window
from store.embedded import Store

# What stands for a quota without a limit, or larger than a column holds.
_UNLIMITED: Final = 2**63 - 1

# What the queries below begin with. An object says since when its quota stands; what was used of it before
# the cluster's nodes were first read (or anything, where no node ever was), nobody saw.
_SEEN: Final = """
with first_read as (
    select cluster, coalesce(min(observed_ms) filter (where kind = 'Node'), min(observed_ms)) as at_ms
    from description
    group by cluster
),

share as (
    select share_span.* replace (
        greatest(share_span.start_ms, coalesce(first_read.at_ms, share_span.start_ms)) as start_ms
    )
    from share_span
    left join first_read on share_span.cluster = first_read.cluster
    where coalesce(first_read.at_ms < share_span.until_ms, true)
),

unassigned as (
    select
        greatest(pool_span.start_ms, coalesce(first_read.at_ms, pool_span.start_ms)) as start_ms,
        pool_span.until_ms,
        pool_span.from_unassigned
    from pool_span
    left join first_read on pool_span.cluster = first_read.cluster
    where coalesce(first_read.at_ms < pool_span.until_ms, true)
)
"""

# One row per cluster, GPU model, team and day: quota times time. What a quota of several teams bears
# belongs to nobody.
_QUOTAS: Final = """
, day as (
    select
        unnest($labels::varchar[]) as label,
        unnest($starts::bigint[]) as start_ms,
        unnest($ends::bigint[]) as end_ms
)

select
    share_span.cluster,
    share_span.gpu_model,
    case when share_span.team = '' then $shared else share_span.team end as team,
    day.label,
    sum(
        share_span.quota::hugeint
        * (
            least(coalesce(share_span.end_ms, day.end_ms), day.end_ms)
            - greatest(share_span.start_ms, day.start_ms)
        )
    ) as micro_gpu_ms
from share as share_span
inner join day
    on share_span.start_ms < day.end_ms and coalesce(share_span.end_ms, day.end_ms) > day.start_ms
where share_span.quota > 0 and share_span.quota < $unlimited
group by share_span.cluster, share_span.gpu_model, share_span.team, day.label
order by share_span.cluster, share_span.gpu_model, share_span.team, day.label
"""

# One row per cluster, GPU model, day, holder and its team or teams: what was lent, borrowed, and neither used
# nor lent, times time.
_LINES: Final = """
, day as (
    select
        unnest($labels::varchar[]) as label,
        unnest($starts::bigint[]) as start_ms,
        unnest($ends::bigint[]) as end_ms
),

teams as (
    select cluster, pool, entity, string_agg(distinct team, ', ' order by team) as names
    from team_share_span
    where start_ms < $end_ms and until_ms > $start_ms
    group by cluster, pool, entity
    having count(distinct team) > 1
),

part as (
    select
        day.label,
        share_span.cluster,
        coalesce(nullif(share_span.team, ''), 'shared by ' || teams.names, $no_team) as team,
        share_span.entity,
        share_span.gpu_model,
        share_span.quota,
        share_span.lent,
        share_span.borrowed,
        case
            when share_span.quota < $unlimited
                then greatest(share_span.quota - share_span.held - share_span.lent, 0)
            else 0
        end as unused,
        least(share_span.until_ms, day.end_ms) - greatest(share_span.start_ms, day.start_ms) as ms
    from share as share_span
    inner join day on share_span.start_ms < day.end_ms and share_span.until_ms > day.start_ms
    left join teams
        on share_span.cluster = teams.cluster
        and share_span.pool = teams.pool
        and share_span.entity = teams.entity
)

select
    label,
    cluster,
    team,
    entity,
    gpu_model,
    sum(lent::hugeint * ms) as lent,
    sum(borrowed::hugeint * ms) as borrowed,
    sum(unused::hugeint * ms) as unused
from part
group by label, cluster, team, entity, gpu_model
having bool_or(quota > 0 or borrowed > 0)
order by label, cluster, team, entity, gpu_model
"""

# One row: what was borrowed from nobody's quota, times time.
_UNASSIGNED: Final = """
select
    coalesce(
        sum(from_unassigned::hugeint * (least(until_ms, $end_ms) - greatest(start_ms, $start_ms))), 0
    ) as micro_gpu_ms
from unassigned as pool_span
where start_ms < $end_ms and until_ms > $start_ms
"""


def quota_by_pool(store: Store, days: Sequence[Period]) -> Mapping[Pool, Mapping[str, int]]:
    """Quota times time by pool and team, micro-GPU-milliseconds."""
    if not days:
        return {}
    asked: dict[str, object] = {
        "shared": UNALLOCATED,
        "unlimited": _UNLIMITED,
        **_of_days(days),
    }
    found: dict[Pool, dict[str, int]] = defaultdict(dict)
    for read in store.rows(_SEEN + _QUOTAS, asked):
        row: dict[str, Any] = read
        pool = Pool(cluster=row["cluster"], gpu_model=row["gpu_model"], day=row["label"])
        found[pool][row["team"]] = found[pool].get(row["team"], 0) + int(row["micro_gpu_ms"])
    return dict(found)


def quota_lines(store: Store, days: Sequence[Period]) -> list[QuotaLine]:
    """What each holder of quota lent, borrowed and left unused on each day; empty where no quota is known."""
    if not days:
        return []
    asked: dict[str, object] = {
        "no_team": NO_TEAM,
        "unlimited": _UNLIMITED,
        "start_ms": days[0].start_ms,
        "end_ms": days[-1].end_ms,
        **_of_days(days),
    }
    rows: list[dict[str, Any]] = store.rows(_SEEN + _LINES, asked)
    return [
        QuotaLine(
            day=row["label"],
            cluster=row["cluster"],
            team=row["team"],
            queue=row["entity"],
            gpu_model=row["gpu_model"],
            time=QuotaTime(int(row["lent"]), int(row["borrowed"]), int(row["unused"])),
        )
        for row in rows
    ]


def borrowed_from_nobody(store: Store, window: Window) -> int:
    """
    What was borrowed and no holder lent, micro-GPU-milliseconds.

    From the cohorts' own quota, or from capacity in no quota: lent = borrowed - this.
    """
    [row] = store.rows(_SEEN + _UNASSIGNED, {"start_ms": window.start_ms, "end_ms": window.end_ms})
    return int(str(row["micro_gpu_ms"]))


def _of_days(days: Sequence[Period]) -> dict[str, object]:
    return {
        "labels": [day.label for day in days],
        "starts": [day.start_ms for day in days],
        "ends": [day.end_ms for day in days],
    }
