"""GPUs held by pods."""

from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="held_gpus",
    unit=Unit.GPUS,
    title="GPUs held",
    definition=(
        "GPUs of the pods bound to a node and neither finished nor gone; a starting or terminating pod holds"
        " its GPUs too. A share that cannot be known makes a lower bound."
    ),
    source="Kubernetes scheduler's accounting of requests by bound, non-terminal pods",
    sql="""\
-- One row per pod that holds GPUs just before $as_of_ms, and rows of zero per combination of
-- dimensions and per pool seen.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    node,
    micro_gpus as value
from gpu_holding
where bound_ms < $as_of_ms and coalesce(released_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    null as gpu_model,
    gang_size,
    null as node,
    0 as value
from seen_before($as_of_ms)
union all
select distinct
    cluster,
    null as queue,
    null as service_class,
    null as priority_class,
    null as team,
    gpu_model,
    null as gang_size,
    node,
    0 as value
from node_capacity
where
    start_ms < $as_of_ms
    and coalesce(end_ms >= $as_of_ms, true)
    and coalesce(capacity_micro_gpus, allocatable_micro_gpus, 1) > 0
""",
    labels=("cluster", "team", "service_class", "gpu_model"),
    dimensions=(*DIMENSIONS, "node"),
    pages=(Page.HOME, Page.CLUSTER),
    open_labels=("node",),
)
