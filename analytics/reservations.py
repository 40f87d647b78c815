"""Quota reserved without pods: the rows and the rule that the metrics of it share."""

from collections.abc import Sequence
from datetime import timedelta

from analytics.evaluate import gpu_sums, sums, whole
from domain.metric import Ask, Row, Sample
from domain.policy import Policy
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_SECOND

# Where pods cannot be seen, admission stands for holding: then nothing is known to be missing.
RESERVATIONS = """\
-- One row per quota reservation just before $as_of_ms, and a row of zero per combination of
-- dimensions seen. without_pods_ms: for how long no pod of the workload has held a GPU, 0 while one does.
with pods as (
    select
        cluster,
        workload_uid,
        max(coalesce(released_ms, $as_of_ms)) as last_held_ms
    from gpu_holding
    where bound_ms < $as_of_ms and open_until_ms >= $as_of_ms
    group by cluster, workload_uid
),

unseen as (
    select distinct cluster, workload_uid
    from workload_attempt
    where
        source = 'admission'
        and start_ms < $as_of_ms
        and coalesce(end_ms >= $as_of_ms, true)
        and open_until_ms >= $as_of_ms
)

select
    gpu_reservation.cluster,
    gpu_reservation.workload_uid,
    gpu_reservation.queue,
    gpu_reservation.service_class,
    gpu_reservation.priority_class,
    gpu_reservation.team,
    case
        when gpu_reservation.first_placed_ms < $as_of_ms then gpu_reservation.gpu_model else ''
    end as gpu_model,
    gpu_reservation.gang_size,
    gpu_reservation.flavor as pool,
    gpu_reservation.micro_gpus,
    case
        when unseen.workload_uid is not null then 0
        else $as_of_ms - least(
            greatest(gpu_reservation.start_ms, coalesce(pods.last_held_ms, gpu_reservation.start_ms)),
            $as_of_ms
        )
    end as without_pods_ms
from gpu_reservation
left join pods
    on gpu_reservation.cluster = pods.cluster and gpu_reservation.workload_uid = pods.workload_uid
left join unseen
    on gpu_reservation.cluster = unseen.cluster and gpu_reservation.workload_uid = unseen.workload_uid
where
    gpu_reservation.start_ms < $as_of_ms
    and coalesce(gpu_reservation.end_ms >= $as_of_ms, true)
    and gpu_reservation.open_until_ms >= $as_of_ms
union all
select distinct
    cluster,
    '' as workload_uid,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    null as pool,
    0 as micro_gpus,
    0 as without_pods_ms
from seen_before($as_of_ms)
"""


def is_phantom(row: Row, policy: Policy) -> bool:
    """Whether the reservation has been without pods for so long that it is a finding."""
    return whole(row, "without_pods_ms") >= policy.phantom_reservation_after / timedelta(milliseconds=1)


def phantom_gpus(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPUs of the phantom reservations."""
    return gpu_sums(
        [{**row, "value": row["micro_gpus"] if is_phantom(row, ask.policy) else 0} for row in rows], ask
    )


def phantom_gpu_seconds(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-seconds of the phantom reservations since they lost their last pod."""
    return sums([{**row, "value": _gpu_seconds(row, ask.policy)} for row in rows], ask)


def _gpu_seconds(row: Row, policy: Policy) -> int | None:
    if not is_phantom(row, policy):
        return 0
    if row["micro_gpus"] is None:
        return None
    return whole(row, "micro_gpus") * whole(row, "without_pods_ms") // (MICRO_PER_GPU * MS_PER_SECOND)
