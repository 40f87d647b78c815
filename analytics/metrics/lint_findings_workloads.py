"""Workloads that break a rule of the lint."""

from collections.abc import Sequence
from datetime import timedelta

from analytics.evaluate import NOTHING_OBSERVED, grouped
from analytics.lint.rules import BREAKS, NOT_OBSERVED
from domain.metric import DIMENSIONS, Ask, Metric, Page, Row, Sample, Unit


def _findings(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    samples = []
    for labels, members in grouped(rows, ask.by):
        for rule, breaks in BREAKS.items():
            found = sum(breaks(row, ask.policy) for row in members)
            samples.append(Sample(labels={**labels, "rule": str(rule)}, value=found))
        for rule, because in NOT_OBSERVED.items():
            samples.append(Sample.undefined({**labels, "rule": str(rule)}, f"not observed: {because}"))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


METRIC = Metric(
    name="lint_findings_workloads",
    unit=Unit.WORKLOADS,
    title="Lint findings",
    definition=(
        "Workloads of the last 7 days that break a rule. no_priority_class: it names none. one_class_for_all:"
        " more than 90 % of the cluster's submissions bear its class. odd_gpu_count: a pod's number of whole"
        " GPUs divides no node size of the pool and is no multiple of one. no_checkpoint_promise: its class"
        " is preemptible, it was placed and told of no checkpoint. over_request: a GPU of it was seen for a"
        " quarter of an hour or more and never active while its pod held it, also where that pod is over by"
        " now; never_active_gpus counts the GPUs of this instant only. What no collected field tells of is"
        " not observed, which is not fine."
    ),
    source="definition of this product",
    sql="""\
-- One row per workload that lived in the window, with what the rules ask of it.
with odd as (
    select ask.cluster, ask.workload_uid, ask.devices
    from whole_gpu_ask as ask
    inner join (
        select distinct cluster, gpu_model, capacity
        from whole_gpu_node
        where start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true)
    ) as size
        on ask.cluster = size.cluster
        and (
            ask.gpu_model in ('', size.gpu_model)
            or coalesce(ask.first_placed_ms >= $as_of_ms, true)
        )
    group by ask.cluster, ask.workload_uid, ask.devices
    having bool_and(size.capacity % ask.devices != 0 and ask.devices % size.capacity != 0)
),

device as (
    select
        cluster,
        workload_uid,
        pod_uid,
        device,
        sum(least(end_ms, $as_of_ms) - start_ms) as seen_ms
    from device_level
    where start_ms < $as_of_ms and bound_ms < $as_of_ms
    group by cluster, workload_uid, pod_uid, device
    having count(case when level in ('high', 'shared') then 1 end) = 0
),

lived as (
    select *, submitted_ms >= $window_start_ms as is_new
    from gpu_workload
    where submitted_ms < $as_of_ms and coalesce(ended_ms >= $window_start_ms, true)
)

select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    is_new,
    coalesce(first_placed_ms < $as_of_ms, false) as has_run,
    count(case when is_new then 1 end) over (partition by cluster, priority_class) as class_submissions,
    count(case when is_new then 1 end) over (partition by cluster) as submissions,
    exists (
        select 1 from odd where odd.cluster = lived.cluster and odd.workload_uid = lived.workload_uid
    ) as is_odd,
    exists (
        select 1 from workload_checkpoint
        where
            workload_checkpoint.cluster = lived.cluster
            and workload_checkpoint.workload_uid = lived.workload_uid
            and workload_checkpoint.at_ms < $as_of_ms
    ) as has_checkpoint,
    (
        select count(*) from device
        where device.cluster = lived.cluster and device.workload_uid = lived.workload_uid
    ) as idle_devices,
    (
        select coalesce(max(device.seen_ms), 0) from device
        where device.cluster = lived.cluster and device.workload_uid = lived.workload_uid
    ) as idle_seen_ms
from lived
""",
    labels=("cluster",),
    dimensions=DIMENSIONS,
    extra_labels=("rule",),
    compute=_findings,
    windowed=True,
    window=timedelta(days=7),
    pages=(Page.POLICY,),
    rests_on_samples=True,
)
