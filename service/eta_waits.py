"""The first waits of a cluster as the estimator of starts takes them, read from the store."""

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
    recent.placed_ms is not null as placed
from recent
left join unplaced on recent.workload_uid = unplaced.workload_uid
where recent.placed_ms is not null or recent.ended_ms is not null or unplaced.waits
order by recent.submitted_ms, recent.workload_uid
"""  # noqa: S608 (numbers from here)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The first waits that were known just before an instant, and the names behind their codes."""

    as_of_ms: int
    past: Past
    uids: list[str]
    classes: list[str]
    queues: dict[str, int]
    place: dict[str, int] = field(default_factory=dict)

    @property
    def waits(self) -> Waits:
        """All of them."""
        return self.past.waits

    def going_on(self) -> list[int]:
        """The places of those that wait now, the longest first."""
        found = np.flatnonzero(self.waits.until_ms == FOREVER_MS)
        return [int(at) for at in found[np.argsort(self.waits.submitted_ms[found], kind="stable")]]


def known_waits(store: Store, cluster: str, as_of_ms: int) -> Known:
    """The first waits of a cluster, as they were known just before an instant."""
    # Counted from the minute, so that within it they are the same as long as nothing happens.
    since_ms = minute_before(as_of_ms) - _BACK_MS
    frame = store.frame(_WAITS, {"cluster": cluster, "as_of_ms": as_of_ms, "since_ms": since_ms})
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
    )
    uids = frame["workload_uid"].to_list()
    return Known(
        as_of_ms=as_of_ms,
        past=Past.of(waits, as_of_ms),
        uids=uids,
        classes=classes,
        queues={name: code for code, name in enumerate(queues)},
        place={uid: at for at, uid in enumerate(uids)},
    )


def _coded(column: pl.Series) -> tuple[list[str], Longs]:
    """The names in order, and the code of each row."""
    names = column.unique().sort()
    return names.to_list(), column.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
