"""What would be lost if a run was cut now, and whose checkpoints are older than the policy allows."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.wastage.asked import GPU_HOUR
from analytics.wastage.rules import checkpoint_budget_ms
from domain.metric import Ask, Row, Sample
from domain.policy import Policy

RUNNING: Final = """\
-- One row per pod with GPUs that runs just before $as_of_ms: since when, and the last checkpoint of its
-- workload by then; and a row of no pod per combination of dimensions seen.
with checkpoint as (
    select cluster, workload_uid, max(at_ms) as checkpoint_ms
    from workload_checkpoint
    where at_ms < $as_of_ms and open_until_ms >= $as_of_ms
    group by cluster, workload_uid
),

running as (
    select cluster, workload_uid, pod_uid, min(start_ms) as start_ms
    from gpu_run
    where start_ms < $as_of_ms and end_ms >= $as_of_ms and open_until_ms >= $as_of_ms
    group by cluster, workload_uid, pod_uid
)

select
    gpu_holding.cluster,
    gpu_holding.queue,
    gpu_holding.service_class,
    gpu_holding.priority_class,
    gpu_holding.team,
    gpu_holding.gpu_model,
    gpu_holding.gang_size,
    gpu_holding.user_name,
    gpu_holding.workload_uid,
    gpu_holding.micro_gpus,
    running.start_ms,
    checkpoint.checkpoint_ms
from running
inner join gpu_holding
    on running.cluster = gpu_holding.cluster
    and running.workload_uid = gpu_holding.workload_uid
    and running.pod_uid = gpu_holding.pod_uid
left join checkpoint
    on running.cluster = checkpoint.cluster and running.workload_uid = checkpoint.workload_uid
where
    gpu_holding.bound_ms < $as_of_ms
    and coalesce(gpu_holding.released_ms >= $as_of_ms, true)
    and gpu_holding.open_until_ms >= $as_of_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    null as gpu_model,
    gang_size,
    user_name,
    null as workload_uid,
    0 as micro_gpus,
    null as start_ms,
    null as checkpoint_ms
from seen_before($as_of_ms)
"""


def gpu_hours_at_risk(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-hours of each group since its runs began, or since their workload's last checkpoint."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        pods = [row for row in members if row["workload_uid"] is not None]
        known = [row for row in pods if row["micro_gpus"] is not None]
        amount = sum(whole(row, "micro_gpus") * (ask.as_of_ms - _since_ms(row)) for row in known)
        bound = len(known) < len(pods)
        samples.append(Sample(labels=labels, value=amount / GPU_HOUR, lower_bound=bound))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def over_budget(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Workloads of each group that publish checkpoints, the last of which is older than their budget."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        late = {workload for workload, since_ms, limit_ms in _published(members, ask) if since_ms > limit_ms}
        samples.append(Sample(labels=labels, value=len(late)))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def _published(rows: Sequence[Row], ask: Ask) -> Iterator[tuple[tuple[str, str], int, int]]:
    """Each workload that has published a checkpoint: who, the age of its work at risk, and its budget."""
    for row in rows:
        if row["workload_uid"] is None or row["checkpoint_ms"] is None:
            continue
        limit_ms = budget_ms(
            ask.policy,
            service_class=str(row["service_class"]),
            priority_class=str(row["priority_class"]),
            run_ms=ask.as_of_ms - whole(row, "start_ms"),
        )
        if limit_ms is not None:
            who = (str(row["cluster"]), str(row["workload_uid"]))
            yield who, ask.as_of_ms - _since_ms(row), limit_ms


def budget_ms(policy: Policy, *, service_class: str, priority_class: str, run_ms: int) -> int | None:
    """
    How old the work at risk of such a run may grow; None where its class is not preemptible.

    A run longer than `long_run` keeps its own budget where that is tighter than the one of long runs.

    >>> budget_ms(Policy(), service_class="batch", priority_class="reserved-training", run_ms=5 * 3_600_000)
    1800000
    """
    if service_class not in policy.preemptible_classes:
        return None
    own = checkpoint_budget_ms(policy, service_class=service_class, priority_class=priority_class)
    if run_ms <= policy.long_run // timedelta(milliseconds=1):
        return own
    longest = policy.long_run_checkpoint_budget // timedelta(milliseconds=1)
    return longest if own is None else min(own, longest)


def _since_ms(row: Row) -> int:
    """Since when nothing of a run is known to be saved."""
    start_ms = whole(row, "start_ms")
    return start_ms if row["checkpoint_ms"] is None else max(start_ms, whole(row, "checkpoint_ms"))
