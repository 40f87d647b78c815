"""Who waits at an instant: the rows and the sums that depth and starvation share."""

from collections.abc import Callable, Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.targets import target_ms
from domain.metric import Ask, Compute, Row, Sample
from domain.policy import Policy
from domain.window import MS_PER_SECOND

# Of those that were not placed yet just before $as_of_ms, or queue again, few of all there ever were, all
# spans are read: `numbered_waits('of_waiter')` has the waits of whoever waits then. What stands after `with`.
WHO_MAY_WAIT = """\
queued_again as (
    select distinct cluster, workload_uid, open_until_ms
    from span
    where
        not first_wait
        and state in ('queued', 'checking', 'placing')
        and start_ms < $as_of_ms
        and (end_ms is null or end_ms >= $as_of_ms)
        and open_until_ms >= $as_of_ms
),

may_wait as materialized (
    select *
    from gpu_workload
    where
        open_until_ms >= $as_of_ms
        and submitted_ms < $as_of_ms
        and (first_placed_ms is null or first_placed_ms >= $as_of_ms)
    union all
    select gpu_workload.*
    from queued_again
    inner join gpu_workload
        on queued_again.cluster = gpu_workload.cluster
        and queued_again.workload_uid = gpu_workload.workload_uid
        and queued_again.open_until_ms = gpu_workload.open_until_ms
    where gpu_workload.open_until_ms >= $as_of_ms and gpu_workload.first_placed_ms < $as_of_ms
),

of_waiter as (
    select * from spans_of('may_wait')
    where start_ms < $as_of_ms and open_until_ms >= $as_of_ms
)"""
# A queue that was never seen as an object may exist; only one that is known to be gone is silent.
WAITING_NOW = f"""\
-- One row per workload that waits just before $as_of_ms, and a row of zeros per combination of
-- dimensions that a queue has had, unless the queue is known to be deleted.
with {WHO_MAY_WAIT},

by_episode as (
    select
        cluster,
        workload_uid,
        name,
        queue,
        service_class,
        priority_class,
        team,
        case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
        gang_size,
        requested_micro_gpus,
        episode,
        sum(least(coalesce(end_ms, $as_of_ms), $as_of_ms) - start_ms) as waited_ms,
        max(coalesce(end_ms, $as_of_ms)) >= $as_of_ms as goes_on
    from numbered_waits('of_waiter')
    group by all
),

waiting as (
    select
        * exclude (episode, waited_ms, goes_on),
        max(case when goes_on then waited_ms end) as episode_ms,
        sum(waited_ms) as cumulative_ms
    from by_episode
    group by all
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
    cluster,
    workload_uid,
    name,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    1 as workloads,
    requested_micro_gpus as micro_gpus,
    episode_ms,
    cumulative_ms
from waiting
union all
select distinct
    seen.cluster,
    '' as workload_uid,
    '' as name,
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
"""  # noqa: S608 (ours)


def longest(rows: Sequence[Row]) -> Row:
    """
    The row with the longest current episode; of equals the one that waited most in all, then by name.

    >>> alike = [{"episode_ms": 1, "cumulative_ms": 2, "name": name} for name in "ab"]
    >>> longest(alike) == longest(alike[::-1])
    True
    """
    return max(
        rows, key=lambda row: (whole(row, "episode_ms"), whole(row, "cumulative_ms"), str(row["name"]))
    )


def longest_waiting(value: Callable[[Row, Policy], float]) -> Compute:
    """A `compute` that tells `value` of the workload with the longest current waiting episode."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = [
            Sample(labels=labels, value=value(row, ask.policy), example=str(row["name"]))
            for labels, members in grouped(rows, ask.by)
            for row in [longest(members)]
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
