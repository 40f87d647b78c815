"""The ladder: how much of what is free pods of each usual size leave over."""

from collections.abc import Sequence

from analytics.evaluate import NOTHING_OBSERVED
from analytics.fragmentation.pools import INVENTORY, POOL, Pool, pools
from analytics.fragmentation.waste import Shape, ladder
from domain.metric import Ask, Metric, Page, Row, Sample, Unit

_WHOLE = "nvidia.com/gpu"


def _ladder(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    groups: dict[tuple[tuple[str, str], ...], list[Pool]] = {}
    for labels, pool in pools(rows):
        groups.setdefault(tuple((name, labels[name]) for name in ask.by), []).append(pool)
    samples = [
        Sample(
            labels={**dict(key), "size": _written(shape)},
            value=float(ladder(_free(members, shape[0]), shape[1])),
        )
        for key, members in groups.items()
        for shape in sorted({shape for pool in members for shape in pool.usual if _is_within(pool, shape)})
    ]
    because = "no workload asked for GPUs of this pool in the last 7 days" if groups else NOTHING_OBSERVED
    return samples or [Sample.undefined({}, because)]


def _free(members: Sequence[Pool], resource: str) -> list[int]:
    return [free for pool in members for (_, each), free in pool.inventory.places() if each == resource]


def _is_within(pool: Pool, shape: Shape) -> bool:
    return any(shape[1] <= count for (_, name), count in pool.capacity.items() if name == shape[0])


def _written(shape: Shape) -> str:
    """A size with the kind of device, where it is not a whole GPU."""
    resource, devices = shape
    return str(devices) if resource == _WHOLE else f"{devices} {resource.removeprefix('nvidia.com/')}"


METRIC = Metric(
    name="fragmentation_ratio",
    unit=Unit.RATIO,
    title="Fragmentation ladder",
    definition=(
        "For each number of devices that pods asked in the last 7 days, up to the largest node: the part of"
        " the free devices that pods of that size would leave over, 1 less the sum over nodes of"
        " floor(free / size) x size over the sum of free. 0 when nothing is free."
    ),
    source="definition of this product",
    sql=INVENTORY,
    labels=POOL,
    dimensions=POOL,
    extra_labels=("size",),
    compute=_ladder,
    pages=(Page.CLUSTER,),
)
