"""GPUs that a running workload has never used."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.wastage.rules import rules_of
from domain.metric import Ask, Row, Sample
from domain.quantity import MICRO_PER_GPU

DEVICES: Final = """\
-- One row per device of a pod that holds GPUs just before $as_of_ms: how long it was seen since its pod
-- started, and how much of that with activity, or shared so that nobody can tell.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    user_name,
    node,
    max(micro_gpus) as micro_gpus,
    $as_of_ms - min(started_ms) as running_ms,
    sum(least(end_ms, $as_of_ms) - start_ms) as seen_ms,
    coalesce(sum(least(end_ms, $as_of_ms) - start_ms) filter (where level in ('high', 'shared')), 0)
        as active_ms
from device_level
where
    bound_ms < $as_of_ms
    and coalesce(released_ms >= $as_of_ms, true)
    and open_until_ms >= $as_of_ms
    and start_ms >= started_ms
    and start_ms < $as_of_ms
group by
    cluster, queue, service_class, priority_class, team, gpu_model, gang_size, user_name, node, workload_uid,
    pod_uid, device
"""


def never_active(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPUs of each group seen for long enough, and never with activity."""
    rules = rules_of(ask.policy)
    least_ms = ask.policy.idle_after // timedelta(milliseconds=1)
    samples = []
    for labels, members in grouped(rows, ask.by):
        unused = sum(
            whole(row, "micro_gpus")
            for row in members
            if row["active_ms"] == 0
            and whole(row, "seen_ms") >= least_ms
            and whole(row, "seen_ms") >= rules.least_samples * whole(row, "running_ms")
        )
        samples.append(Sample(labels=labels, value=unused / MICRO_PER_GPU))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]
