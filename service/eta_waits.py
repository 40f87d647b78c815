"""The waits of a cluster as the estimator of starts takes them, read from the store."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from analytics.censored import Longs
from analytics.eta.estimate import Past
from analytics.eta.waits import FOREVER_MS, Waits, size_bucket
from domain.window import MS_PER_HOUR, minute_before
from store.embedded import Store

# Waits are looked at that began in the last weeks, the newest ones of them; and all that go on.
_BACK_MS: Final = 28 * 24 * MS_PER_HOUR
_MOST: Final = 20_000

# One row per first wait, oldest first. Time in which it was held is no waiting: so much later it begins.
_WAITS: Final = f"""
with recent as (
    select
        workload_uid,
        queue,
        service_class,
        user_name,
        coalesce(requested_micro_gpus, 0) as micro_gpus,
        submitted_ms,
        case when first_placed_ms < $as_of_ms then first_placed_ms end as placed_ms,
        case when ended_ms < $as_of_ms then ended_ms end as ended_ms,
        first_wait_ms
    from gpu_workload
    where
        cluster = $cluster
        and submitted_ms < $as_of_ms
        and (submitted_ms >= $since_ms or open_until_ms >= $as_of_ms)
    order by
        open_until_ms >= $as_of_ms and coalesce(first_placed_ms >= $as_of_ms, true) desc,
        submitted_ms desc
    limit {_MOST}
),

unplaced as (
    select
        span.workload_uid,
        max(
            span.state in ('queued', 'checking', 'placing') and coalesce(span.end_ms >= $as_of_ms, true)
        ) as waits,
        sum(
            case
                when span.state in ('queued', 'checking', 'placing')
                    then least(coalesce(span.end_ms, $as_of_ms), $as_of_ms) - span.start_ms
                else 0
            end
        )::bigint as waited_ms
    from span
    where
        span.cluster = $cluster
        and span.start_ms < $as_of_ms
        and span.workload_uid in (select workload_uid from recent where placed_ms is null)
    group by span.workload_uid
)

select
    recent.workload_uid,
    recent.queue,
    recent.service_class,
    recent.queue || '/' || recent.user_name as line,
    recent.micro_gpus,
    case
        when recent.placed_ms is not null then recent.placed_ms - recent.first_wait_ms
        else coalesce(recent.ended_ms, $as_of_ms) - coalesce(unplaced.waited_ms, 0)
    end::bigint as submitted_ms,
    coalesce(recent.placed_ms, recent.ended_ms, {FOREVER_MS})::bigint as until_ms,
    recent.placed_ms is not null as placed,
    0::bigint as episode
from recent
left join unplaced on recent.workload_uid = unplaced.workload_uid
where recent.placed_ms is not null or recent.ended_ms is not null or unplaced.waits
order by recent.submitted_ms, recent.workload_uid
"""  # noqa: S608 (numbers from here)


# One row per wait after a placement, oldest first: an episode ends with the next place, so hold and back-off
# do not cut it, and are no waiting. A workload that comes back but stands aside now has none for the moment.
_WAITS_AGAIN: Final = f"""
with queued_again as (
    select distinct workload_uid, open_until_ms
    from span
    where
        cluster = $cluster
        and not first_wait
        and state in ('queued', 'checking', 'placing')
        and start_ms < $as_of_ms
        and open_until_ms >= $since_ms
        and (start_ms >= $since_ms or open_until_ms >= $as_of_ms)
),

waits_again as materialized (
    select gpu_workload.*
    from queued_again
    inner join gpu_workload
        on queued_again.workload_uid = gpu_workload.workload_uid
        and queued_again.open_until_ms = gpu_workload.open_until_ms
    where gpu_workload.cluster = $cluster and gpu_workload.open_until_ms >= $since_ms
),

of_waiter as (
    select * from spans_of('waits_again')
    where open_until_ms >= $since_ms
),

episode as (
    select
        workload_uid,
        episode,
        queue,
        service_class,
        user_name,
        coalesce(requested_micro_gpus, 0) as micro_gpus,
        min(start_ms) as start_ms,
        min(case when placed_ms < $as_of_ms then placed_ms end) as placed_ms,
        min(case when ended_ms < $as_of_ms then ended_ms end) as ended_ms,
        max(coalesce(end_ms >= $as_of_ms, true)) as waits,
        sum(least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms)::bigint as waited_ms
    from numbered_waits('of_waiter')
    where episode > 0 and start_ms < $as_of_ms
    group by workload_uid, episode, queue, service_class, user_name, requested_micro_gpus
    having min(start_ms) >= $since_ms or max(coalesce(end_ms >= $as_of_ms, true))
),

newest as (
    select * from episode
    where placed_ms is not null or ended_ms is not null or waits
    order by waits desc, start_ms desc
    limit {_MOST}
)

select
    workload_uid,
    queue,
    service_class,
    queue || '/' || user_name as line,
    micro_gpus,
    (coalesce(placed_ms, ended_ms, $as_of_ms) - waited_ms)::bigint as submitted_ms,
    coalesce(placed_ms, ended_ms, {FOREVER_MS})::bigint as until_ms,
    placed_ms is not null as placed,
    episode
from newest
order by start_ms, workload_uid
"""  # noqa: S608 (numbers from here)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """
    The waits that were known just before an instant, and the names behind their codes.

    `episodes`: of each, 0 for a first one, else a number that grows with each wait of the workload; `place`
    is where the last wait of a workload stands.
    """

    as_of_ms: int
    past: Past
    uids: list[str]
    episodes: list[int]
    classes: list[str]
    queues: dict[str, int]
    place: dict[str, int] = field(default_factory=dict)

    @property
    def waits(self) -> Waits:
        """All of them."""
        return self.past.waits


def known_waits(store: Store, cluster: str, as_of_ms: int) -> Known:
    """The waits of a cluster, as they were known just before an instant."""
    # Counted from the minute, so that within it they are the same as long as nothing happens.
    since_ms = minute_before(as_of_ms) - _BACK_MS
    asked: dict[str, object] = {"cluster": cluster, "as_of_ms": as_of_ms, "since_ms": since_ms}
    frame = pl.concat([store.frame(sql, asked) for sql in (_WAITS, _WAITS_AGAIN)])
    classes, class_codes = _coded(frame["service_class"])
    queues, queue_codes = _coded(frame["queue"])
    waits = Waits(
        submitted_ms=frame["submitted_ms"].to_numpy(),
        until_ms=frame["until_ms"].to_numpy(),
        placed=frame["placed"].to_numpy(),
        queue=queue_codes,
        service_class=class_codes,
        line=_coded(frame["line"])[1],
        size=size_bucket(frame["micro_gpus"].to_numpy()),
        again=frame["episode"].to_numpy() > 0,
    )
    uids = frame["workload_uid"].to_list()
    return Known(
        as_of_ms=as_of_ms,
        past=Past.of(waits, as_of_ms),
        uids=uids,
        episodes=frame["episode"].to_list(),
        classes=classes,
        queues={name: code for code, name in enumerate(queues)},
        place={uid: at for at, uid in enumerate(uids)},
    )


def _coded(column: pl.Series) -> tuple[list[str], Longs]:
    """The names in order, and the code of each row."""
    names = column.unique().sort()
    return names.to_list(), column.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
