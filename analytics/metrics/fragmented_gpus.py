"""Free GPUs that nothing which waits can use."""

from datetime import timedelta

from analytics.fragmentation.inventory import Place, stranded
from analytics.fragmentation.pools import DIMENSIONS, INVENTORY, POOL, Pool, summed_gpus
from domain.alert import AlertRule, Limit
from domain.metric import Ask, Metric, Page, Unit


def _fragmented(pool: Pool, _: Ask) -> dict[Place, int | None]:
    found: dict[Place, int | None] = {}
    for place, devices in stranded(pool.inventory, pool.waiting).items():
        free = pool.inventory.free[place[0]][place[1]]
        all_free, usable = pool.micro(place, free), pool.micro(place, free - devices)
        found[place] = None if all_free is None or usable is None else all_free - usable
    return found


METRIC = Metric(
    name="fragmented_gpus",
    unit=Unit.GPUS,
    title="GPUs fragmented",
    definition=(
        "Free GPUs that no waiting workload can use. A waiting workload is placeable when all its pods fit at"
        " once on the pool's free devices, quota ignored; a node's usable devices are the most that pods of"
        " one placeable workload fill there, and what is free above them is fragmented. 0 for a kind of"
        " device that nothing waits for; all that is free, where nothing that waits is placeable."
    ),
    source="definition of this product; Kubernetes node allocatable less requests, pod sets of waiting work",
    sql=INVENTORY,
    labels=POOL,
    dimensions=DIMENSIONS,
    compute=summed_gpus(_fragmented),
    pages=(Page.CLUSTER, Page.CAPACITY),
    alerts=(
        AlertRule(
            name="GpuFragmented",
            summary="{value} free {gpu_model} of {cluster} are of no use to anybody who waits",
            description=(
                "{value} GPUs are free, and lie so that no waiting workload can use them; that is more than"
                " {limit}, a twentieth of the pool."
            ),
            link="cluster?cluster={cluster}&gpu_model={gpu_model}",
            limit=Limit(times=0.05, gauge="capacity_gpus", on=("cluster", "gpu_model")),
            identity=("cluster", "gpu_model"),
            hold=timedelta(minutes=15),
        ),
    ),
    open_labels=("node",),
)
