"""Workloads that break a rule of the lint."""

from collections.abc import Sequence
from datetime import timedelta

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.lint.rules import BREAKS, NOT_OBSERVED
from domain.metric import DIMENSIONS, Ask, Metric, Page, Row, Sample, Unit


def _findings(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    samples = []
    for labels, members in grouped(rows, ask.by):
        for rule, breaks in BREAKS.items():
            found = sum(whole(row, "workloads") for row in members if breaks(row, ask.policy))
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
with asked as (
    select
        cluster,
        workload_uid,
        devices,
        case when first_placed_ms < $as_of_ms then gpu_model else '' end as model
    from whole_gpu_ask
    where open_until_ms >= $window_start_ms
),

odd_shape as (
    select shape.cluster, shape.model, shape.devices
    from (select distinct cluster, model, devices from asked) as shape
    inner join whole_gpu_node as size
        on shape.cluster = size.cluster and shape.model in ('', size.gpu_model)
    where size.start_ms < $as_of_ms and coalesce(size.end_ms >= $as_of_ms, true)
    group by shape.cluster, shape.model, shape.devices
    having bool_and(size.capacity % shape.devices != 0 and shape.devices % size.capacity != 0)
),

odd as (
    select distinct asked.cluster, asked.workload_uid
    from asked
    inner join odd_shape
        on asked.cluster = odd_shape.cluster
        and asked.model = odd_shape.model
        and asked.devices = odd_shape.devices
),

device as (
    select
        cluster,
        workload_uid,
        pod_uid,
        device,
        sum(least(end_ms, $as_of_ms) - start_ms) as seen_ms
    from device_level
    where start_ms < $as_of_ms and bound_ms < $as_of_ms and open_until_ms >= $window_start_ms
    group by cluster, workload_uid, pod_uid, device
    having count(case when level in ('high', 'shared') then 1 end) = 0
),

lived as (
    select
        *,
        submitted_ms >= $window_start_ms as is_new,
        coalesce(first_placed_ms < $as_of_ms, false) as has_run
    from gpu_workload
    where
        submitted_ms < $as_of_ms
        and coalesce(ended_ms >= $window_start_ms, true)
        and open_until_ms >= $window_start_ms
),

of_class as (
    select
        cluster,
        priority_class,
        count_if(is_new) as class_submissions,
        sum(count_if(is_new)) over (partition by cluster) as submissions
    from lived
    group by cluster, priority_class
)

select
    lived.cluster,
    lived.queue,
    lived.service_class,
    lived.priority_class,
    lived.team,
    case when lived.has_run then lived.gpu_model else '' end as gpu_model,
    lived.gang_size,
    lived.is_new,
    lived.has_run,
    of_class.class_submissions,
    of_class.submissions,
    odd.workload_uid is not null as is_odd,
    checkpoint.workload_uid is not null as has_checkpoint,
    coalesce(idle.devices, 0) as idle_devices,
    coalesce(idle.seen_ms, 0) as idle_seen_ms,
    1 as workloads
from lived
inner join of_class
    on lived.cluster = of_class.cluster and lived.priority_class = of_class.priority_class
left join odd on lived.cluster = odd.cluster and lived.workload_uid = odd.workload_uid
left join (
    select distinct cluster, workload_uid
    from workload_checkpoint
    where at_ms < $as_of_ms and open_until_ms >= $window_start_ms
) as checkpoint
    on lived.cluster = checkpoint.cluster and lived.workload_uid = checkpoint.workload_uid
left join (
    select cluster, workload_uid, count(*) as devices, max(seen_ms) as seen_ms
    from device
    group by cluster, workload_uid
) as idle
    on lived.cluster = idle.cluster and lived.workload_uid = idle.workload_uid
""",
    labels=("cluster",),
    dimensions=DIMENSIONS,
    extra_labels=("rule",),
    compute=_findings,
    adds=("workloads",),
    apart=(
        *("priority_class", "service_class", "is_new", "has_run", "class_submissions", "submissions"),
        *("is_odd", "has_checkpoint", "idle_devices", "idle_seen_ms"),
    ),
    windowed=True,
    window=timedelta(days=7),
    pages=(Page.POLICY,),
    rests_on_samples=True,
)
