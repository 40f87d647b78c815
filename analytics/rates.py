"""
How often work is thrown out or begins anew, for what was done: per attempt and per 1,000 GPU-hours.

Definitions leave open what a restart is: here an attempt that is not the workload's first, and a further
run of a pod within its attempt, as after a crash. Both rates may exceed 1.
"""

from collections.abc import Sequence
from typing import Final, Literal

from analytics.evaluate import grouped, whole
from domain.metric import Ask, Compute, Row, Sample
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR

NO_ATTEMPT: Final = "no attempt started in the window"
NOTHING_HELD: Final = "no GPU was held in the window"
UNKNOWN_SHARE: Final = "the GPUs of a pod that held some in the window are not known"
ADDS: Final = ("preemptions", "restarts", "attempts", "amount", "unmeasured")

DONE: Final = """\
-- One row per combination of dimensions and of what is counted in [$window_start_ms, $as_of_ms): preemptions,
-- restarts, attempts started, GPU-time held (amount, micro-GPU times milliseconds), and pods that held an
-- unknown share (unmeasured).
with began as (
    select
        gpu_run.*,
        min(start_ms) over (partition by cluster, workload_uid, pod_uid) as first_ms
    from gpu_run
    where
        start_ms < $as_of_ms
        and coalesce(released_ms >= $window_start_ms, true)
        and open_until_ms >= $window_start_ms
),

counted as (
    select
        cluster, queue, service_class, priority_class, team, gang_size, first_placed_ms, gpu_model,
        1 + missed as preemptions, 0 as restarts, 0 as attempts, 0 as amount, 0 as unmeasured
    from workload_preemption
    where at_ms >= $window_start_ms and at_ms < $as_of_ms and open_until_ms >= $window_start_ms
    union all
    select
        cluster, queue, service_class, priority_class, team, gang_size, first_placed_ms, gpu_model,
        0, case when number > 1 then 1 else 0 end, 1, 0, 0
    from workload_attempt
    where
        start_ms >= $window_start_ms and start_ms < $as_of_ms and open_until_ms >= $window_start_ms
    union all
    select
        cluster, queue, service_class, priority_class, team, gang_size, first_placed_ms, gpu_model,
        0, 1, 0, 0, 0
    from began
    where start_ms >= $window_start_ms and start_ms > first_ms
    union all
    select
        cluster, queue, service_class, priority_class, team, gang_size, first_placed_ms, gpu_model,
        0, 0, 0,
        coalesce(
            micro_gpus::hugeint
            * (least(coalesce(released_ms, $as_of_ms), $as_of_ms) - greatest(bound_ms, $window_start_ms)),
            0
        ),
        case when micro_gpus is null then 1 else 0 end
    from gpu_holding
    where
        bound_ms < $as_of_ms
        and coalesce(released_ms > $window_start_ms, true)
        and open_until_ms >= $window_start_ms
)

select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    sum(preemptions) as preemptions,
    sum(restarts) as restarts,
    sum(attempts) as attempts,
    sum(amount) as amount,
    sum(unmeasured) as unmeasured
from counted
group by all
"""


def per_attempt(counted: Literal["preemptions", "restarts"]) -> Compute:
    """A `compute` that divides by the attempts started; `few` where those are few."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            attempts = _sum(members, "attempts")
            if attempts:
                value, few = _sum(members, counted) / attempts, attempts < ask.policy.few_below
                samples.append(Sample(labels=labels, value=value, few=few))
            else:
                samples.append(Sample.undefined(labels, NO_ATTEMPT))
        return samples or [Sample.undefined({}, NO_ATTEMPT)]

    return compute


def per_1000_gpu_hours(counted: Literal["preemptions", "restarts"]) -> Compute:
    """A `compute` that divides by the GPU-time held; undefined where some of it is not known."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            hours = _sum(members, "amount") / MICRO_PER_GPU / MS_PER_HOUR
            if _sum(members, "unmeasured"):
                samples.append(Sample.undefined(labels, UNKNOWN_SHARE))
            elif hours:
                samples.append(Sample(labels=labels, value=1000 * _sum(members, counted) / hours))
            else:
                samples.append(Sample.undefined(labels, NOTHING_HELD))
        return samples or [Sample.undefined({}, NOTHING_HELD)]

    return compute


def _sum(members: Sequence[Row], column: str) -> int:
    return sum(whole(row, column) for row in members)
