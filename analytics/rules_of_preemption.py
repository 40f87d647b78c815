"""
Whether preemptions kept the site's rules: whom they may take, and how soon again.

Definitions leave open where a lower class counts as present: here it is work that was on GPUs of the
victim's model in the victim's cluster at that instant, for no scheduler can take others in its place.
Work without a class stands with batch, whose promise it has. A preemption of which only a counter tells
has no instant that could be looked at, and makes a lower bound.
"""

from collections.abc import Callable, Sequence
from typing import Final

from analytics.evaluate import grouped, whole
from domain.metric import Ask, Compute, Row, Sample
from domain.policy import Policy
from domain.window import MS_PER_SECOND
from domain.workload import ServiceClass

NONE_OBSERVED: Final = "nothing of this kind was observed"

# From the lowest on: whom a preemption should take first.
_ORDER: Final = (ServiceClass.BEST_EFFORT, ServiceClass.BATCH, ServiceClass.INTERACTIVE)

IN_THE_WINDOW: Final = """\
-- One row per preemption in [$window_start_ms, $as_of_ms), with the classes of the work that was on GPUs of
-- its model just before, and when its workload was preempted before; and a row of nulls per combination of
-- dimensions.
with taken as (
    select * from workload_preemption
    where at_ms >= $window_start_ms and at_ms < $as_of_ms and open_until_ms >= $window_start_ms
),

runs as (
    select * from workload_span
    where
        state in ('starting', 'running')
        and start_ms < $as_of_ms
        and coalesce(end_ms >= $window_start_ms, true)
        and open_until_ms >= $window_start_ms
        and exists (select 1 from taken)
),

present as (
    select
        taken.cluster,
        taken.workload_uid,
        taken.at_ms,
        string_agg(distinct runs.service_class, ' ' order by runs.service_class) as classes
    from taken
    inner join runs
        on taken.cluster = runs.cluster
        and taken.gpu_model = runs.gpu_model
        and taken.at_ms > runs.start_ms
        and taken.at_ms <= coalesce(runs.end_ms, 9223372036854775807)
    group by taken.cluster, taken.workload_uid, taken.at_ms
)

select
    taken.cluster,
    taken.queue,
    taken.service_class,
    taken.priority_class,
    taken.team,
    case when taken.first_placed_ms < $as_of_ms then taken.gpu_model else '' end as gpu_model,
    taken.gang_size,
    taken.at_ms,
    taken.before_ms,
    taken.missed,
    coalesce(present.classes, '') as classes
from taken
left join present
    on taken.cluster = present.cluster
    and taken.workload_uid = present.workload_uid
    and taken.at_ms = present.at_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    null as at_ms,
    null as before_ms,
    0 as missed,
    '' as classes
from seen_before($as_of_ms)
"""


def breaches(holds: Callable[[Row, Policy], bool]) -> Compute:
    """A `compute` that counts the preemptions of which `holds` is true, from rows of `IN_THE_WINDOW`."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            seen = [row for row in members if row["at_ms"] is not None]
            unseen = any(whole(row, "missed") for row in seen)
            found = sum(holds(row, ask.policy) for row in seen)
            samples.append(Sample(labels=labels, value=found, lower_bound=unseen))
        return samples or [Sample.undefined({}, NONE_OBSERVED)]

    return compute


def spares_the_lowest(row: Row, policy: Policy) -> bool:
    """
    Whether a victim was not in the lowest preemptible class present.

    A victim of a class that must not be preempted at all is none, whoever else was there.
    """
    victim = _ranked(str(row["service_class"]))
    preemptible = {_ranked(name) for name in policy.preemptible_classes}
    present = {_ranked(name) for name in str(row["classes"]).split()} | {victim}
    lowest = next((name for name in _ORDER if name in present & preemptible), None)
    return victim != lowest


def comes_too_soon(row: Row, policy: Policy) -> bool:
    """Whether a workload of a protected class had been preempted within its protection window before."""
    protected = {_ranked(name) for name in policy.protected_classes}
    if row["before_ms"] is None or _ranked(str(row["service_class"])) not in protected:
        return False
    window_ms = round(policy.protection_window.total_seconds() * MS_PER_SECOND)
    return whole(row, "at_ms") - whole(row, "before_ms") < window_ms


def _ranked(service_class: str) -> ServiceClass:
    return ServiceClass(service_class) if service_class in _ORDER else ServiceClass.BATCH
