"""The queue against its cap: how full, and how soon it is full if it grows as it did."""

from collections.abc import Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_SECOND

# Waiting before and now: those of whom either is true have a row.
THEN_AND_NOW = """\
-- One row per workload that waits just before $as_of_ms or waited just before $window_start_ms, and a row
-- of zeros per combination of dimensions.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    max(case when start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true) then 1 else 0 end) as waits,
    max(
        case when start_ms < $window_start_ms and coalesce(end_ms >= $window_start_ms, true) then 1 else 0 end
    ) as waited
from waiting_span
where
    start_ms < $as_of_ms and coalesce(end_ms >= $window_start_ms, true) and open_until_ms >= $window_start_ms
group by cluster, queue, service_class, priority_class, team, workload_uid
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    0 as waits,
    0 as waited
from seen_before($as_of_ms)
"""
DIMENSIONS = ("cluster", "queue", "service_class", "priority_class", "team")


def part_of_cap(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Waiting workloads over the cap."""
    return [
        Sample(labels=labels, value=_count(members, "waits") / ask.policy.queue_cap_workloads)
        for labels, members in grouped(rows, ask.by)
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


def time_to_cap(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Seconds until the cap is reached, if the queue grows on as it did in the window; 0 where it is."""
    return [_time_to_cap(labels, members, ask) for labels, members in grouped(rows, ask.by)] or [
        Sample.undefined({}, NOTHING_OBSERVED)
    ]


def _time_to_cap(labels: dict[str, str], members: Sequence[Row], ask: Ask) -> Sample:
    now, then = _count(members, "waits"), _count(members, "waited")
    room = ask.policy.queue_cap_workloads - now
    if room <= 0:
        return Sample(labels=labels, value=0.0)
    if now <= then:
        return Sample.undefined(labels, "the queue did not grow in the window")
    length_ms = ask.window.end_ms - ask.window.start_ms
    return Sample(labels=labels, value=room * length_ms / (now - then) / MS_PER_SECOND)


def _count(members: Sequence[Row], column: str) -> int:
    return sum(whole(row, column) for row in members)
