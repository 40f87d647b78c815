"""Who waits at an instant: the rows and the sums that depth and starvation share."""

from collections.abc import Callable, Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.targets import target_ms
from domain.metric import Ask, Compute, Row, Sample
from domain.policy import Policy
from domain.window import MS_PER_SECOND

# A queue that was never seen as an object may exist; only one that is known to be gone is silent.
WAITING_NOW = """\
-- One row per workload that waits just before $as_of_ms, and a row of zeros per combination of
-- dimensions that a queue has had, unless the queue is known to be deleted.
with by_episode as (
    select
        cluster,
        workload_uid,
        episode,
        sum(least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms) as waited_ms,
        max(coalesce(end_ms, $as_of_ms)) >= $as_of_ms as goes_on
    from waiting_span
    where start_ms < $as_of_ms and open_until_ms >= $as_of_ms
    group by cluster, workload_uid, episode
),

waiting as (
    select
        cluster,
        workload_uid,
        max(case when goes_on then waited_ms end) as episode_ms,
        sum(waited_ms) as cumulative_ms
    from by_episode
    group by cluster, workload_uid
    having max(case when goes_on then 1 else 0 end) = 1
),

known_queue as (
    select
        cluster,
        queue,
        max(coalesce(end_ms, $as_of_ms)) >= $as_of_ms as is_live
    from live_queue
    where start_ms < $as_of_ms
    group by cluster, queue
)

select
    gpu_workload.cluster,
    gpu_workload.workload_uid,
    gpu_workload.queue,
    gpu_workload.service_class,
    gpu_workload.priority_class,
    gpu_workload.team,
    case when gpu_workload.first_placed_ms < $as_of_ms then gpu_workload.gpu_model else '' end as gpu_model,
    gpu_workload.gang_size,
    1 as workloads,
    gpu_workload.requested_micro_gpus as micro_gpus,
    waiting.episode_ms,
    waiting.cumulative_ms
from waiting
inner join gpu_workload
    on waiting.cluster = gpu_workload.cluster and waiting.workload_uid = gpu_workload.workload_uid
where gpu_workload.open_until_ms >= $as_of_ms
union all
select distinct
    seen.cluster,
    '' as workload_uid,
    seen.queue,
    seen.service_class,
    seen.priority_class,
    seen.team,
    seen.gpu_model,
    seen.gang_size,
    0 as workloads,
    0 as micro_gpus,
    0 as episode_ms,
    0 as cumulative_ms
from seen_before($as_of_ms) as seen
left join known_queue
    on seen.cluster = known_queue.cluster and seen.queue = known_queue.queue
where coalesce(known_queue.is_live, true)
"""


def longest(rows: Sequence[Row]) -> Row:
    """The row with the longest current episode; of equals the one that has waited most in all."""
    return max(rows, key=lambda row: (whole(row, "episode_ms"), whole(row, "cumulative_ms")))


def longest_waiting(value: Callable[[Row, Policy], float]) -> Compute:
    """A `compute` that tells `value` of the workload with the longest current waiting episode."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = [
            Sample(labels=labels, value=value(longest(members), ask.policy))
            for labels, members in grouped(rows, ask.by)
        ]
        return samples or [Sample.undefined({}, NOTHING_OBSERVED)]

    return compute


def highest(value: Callable[[Row, Policy], float]) -> Compute:
    """A `compute` that tells the greatest `value` of any waiting workload."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = [
            Sample(labels=labels, value=max(value(row, ask.policy) for row in members))
            for labels, members in grouped(rows, ask.by)
        ]
        return samples or [Sample.undefined({}, NOTHING_OBSERVED)]

    return compute


def counted(holds: Callable[[Row, Policy], bool]) -> Compute:
    """A `compute` that counts the waiting workloads of which `holds` is true."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = [
            Sample(
                labels=labels,
                value=sum(whole(row, "workloads") for row in members if holds(row, ask.policy)),
            )
            for labels, members in grouped(rows, ask.by)
        ]
        return samples or [Sample.undefined({}, NOTHING_OBSERVED)]

    return compute


def episode_seconds(row: Row, _policy: Policy) -> float:
    """How long the current episode lasts."""
    return whole(row, "episode_ms") / MS_PER_SECOND


def cumulative_seconds(row: Row, _policy: Policy) -> float:
    """All waiting of the workload, earlier episodes included."""
    return whole(row, "cumulative_ms") / MS_PER_SECOND


def target_ratio(row: Row, policy: Policy) -> float:
    """The current episode over what the workload's class was promised."""
    return whole(row, "episode_ms") / target_ms(policy, str(row["service_class"]))
