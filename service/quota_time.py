"""Quota over time, as money looks at it: by whom idle capacity may be borne, and what nobody used."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from analytics.chargeback.distribution import UNALLOCATED, Pool
from domain.calendar import Period
from domain.window import Window
from store.embedded import Store

# What stands for a quota without a limit, or larger than a column holds.
_UNLIMITED: Final = 2**63 - 1

# One row per cluster, GPU model, team and day: quota times time. What a quota of several teams bears
# belongs to nobody.
_QUOTAS: Final = """
with day as (
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
from share_span
inner join day
    on share_span.start_ms < day.end_ms and coalesce(share_span.end_ms, day.end_ms) > day.start_ms
where share_span.quota > 0 and share_span.quota < $unlimited
group by share_span.cluster, share_span.gpu_model, share_span.team, day.label
order by share_span.cluster, share_span.gpu_model, share_span.team, day.label
"""

# One row: quota that was neither used nor lent, times time.
_UNUSED: Final = """
select
    count(*) as spans,
    coalesce(
        sum(
            greatest(quota - held - lent, 0)::hugeint
            * (least(coalesce(end_ms, $end_ms), $end_ms) - greatest(start_ms, $start_ms))
        ),
        0
    ) as micro_gpu_ms
from share_span
where start_ms < $end_ms and coalesce(end_ms, $end_ms) > $start_ms and quota < $unlimited
"""


def quota_by_pool(store: Store, days: Sequence[Period]) -> Mapping[Pool, Mapping[str, int]]:
    """Quota times time by pool and team, micro-GPU-milliseconds."""
    if not days:
        return {}
    asked: dict[str, object] = {
        "shared": UNALLOCATED,
        "unlimited": _UNLIMITED,
        "labels": [day.label for day in days],
        "starts": [day.start_ms for day in days],
        "ends": [day.end_ms for day in days],
    }
    found: dict[Pool, dict[str, int]] = defaultdict(dict)
    for read in store.rows(_QUOTAS, asked):
        row: dict[str, Any] = read
        pool = Pool(cluster=row["cluster"], gpu_model=row["gpu_model"], day=row["label"])
        found[pool][row["team"]] = found[pool].get(row["team"], 0) + int(row["micro_gpu_ms"])
    return dict(found)


def unused_commitment(store: Store, window: Window) -> tuple[int | None, str]:
    """Quota that was neither used nor lent, micro-GPU-milliseconds; None with the reason."""
    rows: list[dict[str, Any]] = store.rows(
        _UNUSED, {"start_ms": window.start_ms, "end_ms": window.end_ms, "unlimited": _UNLIMITED}
    )
    if not rows[0]["spans"]:
        return None, "no quota is known in these days"
    return int(rows[0]["micro_gpu_ms"]), ""
