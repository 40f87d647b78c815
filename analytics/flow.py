"""
The way through the queue as flows: what comes, what leaves, and what is admitted.

A workload comes when it begins to wait and leaves when it stops, whatever comes next; so that arrivals
less departures are the change of the depth. Definitions leave open what is admitted where no system
holds back for quota: such a workload is admitted as it comes.
"""

from collections.abc import Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_SECOND

FLOWS = ("arrivals", "departures", "admissions")

TURNS = """\
-- One row per combination of dimensions: how often workloads began to wait in [$window_start_ms,
-- $as_of_ms), stopped waiting, and were admitted; of zeros where nothing happened.
with span as (
    select * from workload_span
    where
        start_ms < $as_of_ms
        and coalesce(end_ms > start_ms, true)
        and coalesce(end_ms >= $window_start_ms, true)
        and open_until_ms >= $window_start_ms
),

turn as (
    select
        later.*,
        coalesce(earlier.waits, false) as waited,
        later.state in ('placing', 'starting', 'running')
        and coalesce(earlier.state in ('queued', 'checking', 'held'), true) as is_admitted
    from span as later
    left join span as earlier
        on later.cluster = earlier.cluster
        and later.workload_uid = earlier.workload_uid
        and later.start_ms = earlier.end_ms
    where later.start_ms >= $window_start_ms
)

select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    count(case when waits and not waited then 1 end) as arrivals,
    count(case when waited and not waits then 1 end) as departures,
    count(case when is_admitted then 1 end) as admissions
from turn
group by all
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    0 as arrivals,
    0 as departures,
    0 as admissions
from seen_before($as_of_ms)
"""


def per_second(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Each flow over the length of the window, per second."""
    seconds = (ask.window.end_ms - ask.window.start_ms) / MS_PER_SECOND
    return [
        Sample(labels={**labels, "flow": flow}, value=sum(whole(row, flow) for row in members) / seconds)
        for labels, members in grouped(rows, ask.by)
        for flow in FLOWS
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]
