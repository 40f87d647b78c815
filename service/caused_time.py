"""
Held GPU-time by cause, as statements book it.

A day keeps the cause that was known when it ended. What is learnt later, for example that hours of
running were lost in a crash, is booked on the day on which it became known, as `loss_adjustment`:
taken from what the time had counted as, and added to what it counts as now.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from analytics.chargeback.line import Causes
from domain.calendar import Period
from service.model_time import MODELLED
from store.embedded import Store

LOSS_ADJUSTMENT: Final = "loss_adjustment"
# Day, kind, cluster, team, project, user, queue, model: as in `analytics.chargeback.statement.DIMENSIONS`.
Key: TypeAlias = tuple[str, ...]

# One row per day, owner, model, cause and whether it corrects an earlier day. `since_ms` is the start
# of the day from which on the present cause counts; before it the earlier one does. `known_ms` is the first
# instant from whose past the cause follows: the day that ends with it knows, as the metrics at its end do.
_CAUSES: Final = f"""
with {MODELLED},

day as (
    select
        unnest($labels::varchar[]) as label,
        unnest($starts::bigint[]) as start_ms,
        unnest($ends::bigint[]) as end_ms
),

piece as (
    select
        modelled.*,
        workload.project,
        least(coalesce(modelled.end_ms, $end_ms), $end_ms) as until_ms,
        case
            when modelled.known_ms is null or modelled.known_ms <= $start_ms then 0
            when modelled.known_ms > $end_ms then $end_ms
            else (select max(day.start_ms) from day where day.start_ms < modelled.known_ms)
        end as since_ms
    from modelled
    inner join workload
        on modelled.cluster = workload.cluster and modelled.workload_uid = workload.workload_uid
    where
        modelled.micro_gpus is not null
        and modelled.start_ms < $end_ms
        and (
            coalesce(modelled.end_ms, $end_ms) > $start_ms
            or (modelled.known_ms > $start_ms and modelled.known_ms <= $end_ms)
        )
),

booked as (
    select
        day.label,
        false as adjusts,
        piece.cause,
        piece.micro_gpus,
        piece.cluster,
        piece.team,
        piece.project,
        piece.user_name,
        piece.queue,
        piece.gpu_model,
        least(piece.until_ms, day.end_ms) - greatest(piece.start_ms, day.start_ms, piece.since_ms) as ms
    from piece
    inner join day on piece.start_ms < day.end_ms and piece.until_ms > day.start_ms
    union all
    select
        day.label,
        false as adjusts,
        piece.earlier_cause as cause,
        piece.micro_gpus,
        piece.cluster,
        piece.team,
        piece.project,
        piece.user_name,
        piece.queue,
        piece.gpu_model,
        least(piece.until_ms, day.end_ms, piece.since_ms) - greatest(piece.start_ms, day.start_ms) as ms
    from piece
    inner join day on piece.start_ms < day.end_ms and piece.until_ms > day.start_ms
    union all
    select
        day.label,
        true as adjusts,
        unnest([piece.cause, piece.earlier_cause]) as cause,
        unnest([piece.micro_gpus, -piece.micro_gpus]) as micro_gpus,
        piece.cluster,
        piece.team,
        piece.project,
        piece.user_name,
        piece.queue,
        piece.gpu_model,
        least(piece.until_ms, day.start_ms) - piece.start_ms as ms
    from piece
    inner join day on piece.since_ms = day.start_ms
    where piece.known_ms is not null
)

select
    label,
    adjusts,
    cause,
    cluster,
    team,
    project,
    user_name,
    queue,
    gpu_model,
    sum(micro_gpus::hugeint * ms) as micro_gpu_ms
from booked
where ms > 0
group by label, adjusts, cause, cluster, team, project, user_name, queue, gpu_model
order by label, adjusts, cause, cluster, team, project, user_name, queue, gpu_model
"""  # noqa: S608 (text from here)


def in_teams(found: Mapping[Key, Causes]) -> dict[Key, Causes]:
    """The same by team: without project, user and queue."""
    sums: dict[Key, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (day, kind, cluster, team, _, _, _, gpu_model), causes in found.items():
        of_team = sums[day, kind, cluster, team, "", "", "", gpu_model]
        for cause, amount in causes.items():
            of_team[cause] += amount
    return {key: dict(causes) for key, causes in sums.items()}


def caused_time(store: Store, days: Sequence[Period]) -> dict[Key, Causes]:
    """
    Held micro-GPU-milliseconds by line and cause, over days in order.

    An adjustment sums to 0 over its causes.
    """
    if not days:
        return {}
    asked = {
        "labels": [day.label for day in days],
        "starts": [day.start_ms for day in days],
        "ends": [day.end_ms for day in days],
        "start_ms": days[0].start_ms,
        "end_ms": days[-1].end_ms,
    }
    found: dict[Key, dict[str, int]] = defaultdict(dict)
    for read in store.rows(_CAUSES, asked):
        row: dict[str, Any] = read
        kind = LOSS_ADJUSTMENT if row["adjusts"] else "held"
        owner = (row["team"], row["project"], row["user_name"], row["queue"])
        key = (row["label"], kind, row["cluster"], *owner, row["gpu_model"])
        if row["micro_gpu_ms"]:
            found[key][row["cause"]] = int(row["micro_gpu_ms"])
    return dict(found)
