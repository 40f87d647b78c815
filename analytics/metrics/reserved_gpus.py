"""GPUs that quota is reserved for."""

from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="reserved_gpus",
    unit=Unit.GPUS,
    title="GPUs reserved",
    definition=(
        "GPUs for which quota is reserved now, whether or not pods hold them; label `pool` is the flavor."
    ),
    source="Kueue QuotaReserved and status.admission",
    sql="""\
-- One row per quota reservation just before $as_of_ms, and a row of zero per combination of
-- dimensions seen.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model,
    gang_size,
    flavor as pool,
    micro_gpus as value
from gpu_reservation
where start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
union all
select distinct
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    null as pool,
    0 as value
from seen_before($as_of_ms)
""",
    labels=("cluster", "queue", "pool"),
    dimensions=(*DIMENSIONS, "pool"),
    pages=(Page.QUEUES,),
    # The pool of a reservation is a flavor, which tells of nobody.
    open_labels=("pool",),
    shared_labels=("queue",),
)
