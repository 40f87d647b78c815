"""Fragmented GPUs that a repack of movable work would give back."""

from analytics.fragmentation.inventory import Place
from analytics.fragmentation.pools import INVENTORY, POOL, Pool, summed_gpus
from analytics.fragmentation.repack import reclaimable
from domain.metric import Ask, Metric, Page, Unit


def _given_back(pool: Pool, ask: Ask) -> dict[Place, int | None]:
    movable = [pod for service_class, pod in pool.held if service_class in ask.policy.preemptible_classes]
    gained = reclaimable(pool.inventory, pool.waiting, movable)
    found: dict[Place, int | None] = {}
    for place in pool.capacity:
        devices = gained.get(place, 0)
        micro = pool.micro(place, abs(devices))
        found[place] = None if micro is None else micro if devices > 0 else -micro
    return found


METRIC = Metric(
    name="reclaimable_gpus",
    unit=Unit.GPUS,
    title="GPUs reclaimable",
    definition=(
        "Fragmented GPUs fewer after the pods of movable classes on nodes that take new pods are placed anew,"
        " first fit decreasing, nodes with the least room first. 0 where a pod would find no place, or the"
        " repack gives nothing back."
    ),
    source="first-fit decreasing bin packing over the same inventory as fragmented GPUs",
    sql=INVENTORY,
    labels=POOL,
    dimensions=POOL,
    compute=summed_gpus(_given_back),
    pages=(Page.CLUSTER, Page.CAPACITY),
)
