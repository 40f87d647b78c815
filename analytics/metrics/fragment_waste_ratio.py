"""Fragment waste: what a pod of the usual shapes is expected to find unusable."""

from collections.abc import Sequence
from fractions import Fraction

from analytics.evaluate import NOTHING_OBSERVED
from analytics.fragmentation.pools import INVENTORY, POOL, Pool, pools
from analytics.fragmentation.waste import popular, unusable
from domain.metric import Ask, Metric, Page, Row, Sample, Unit

_NOTHING_ASKED = "no workload asked for GPUs of this pool in the last 7 days"


def _waste(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    groups: dict[tuple[tuple[str, str], ...], list[Pool]] = {}
    for labels, pool in pools(rows):
        groups.setdefault(tuple((name, labels[name]) for name in ask.by), []).append(pool)
    return [_of_group(dict(key), members) for key, members in groups.items()] or [
        Sample.undefined({}, NOTHING_OBSERVED)
    ]


def _of_group(labels: dict[str, str], members: Sequence[Pool]) -> Sample:
    lost, total, is_known = Fraction(0), 0, True
    if not any(pool.usual for pool in members):
        return Sample.undefined(labels, _NOTHING_ASKED)
    for pool in members:
        free = {place: pool.micro(place, count) for place, count in pool.inventory.places()}
        owned = [pool.micro(place, count) for place, count in pool.capacity.items()]
        is_known = is_known and None not in free.values() and None not in owned
        known = {place: micro for place, micro in free.items() if micro is not None}
        lost += unusable(pool.inventory, popular(pool.usual), known)
        total += sum(micro for micro in owned if micro is not None)
    if not is_known:
        return Sample.undefined(labels, "the share of a card that a device is cannot be known")
    if not total:
        return Sample.undefined(labels, "the pool has no GPUs")
    return Sample(labels=labels, value=float(lost / total))


METRIC = Metric(
    name="fragment_waste_ratio",
    unit=Unit.RATIO,
    title="Fragment waste",
    definition=(
        "Free GPUs that a pod of the usual shapes is expected to find unusable, over all GPUs. The shapes are"
        " those of the pods asked in the last 7 days with a GPU of a kind that the pool offers, by how often,"
        " the rarest cut at 95 % cumulative. A node's free devices are unusable for a shape when the node has"
        " too few of its kind free, and those of another kind always."
    ),
    source="FGD: Weng et al., USENIX ATC 2023, over whole devices",
    sql=INVENTORY,
    labels=POOL,
    dimensions=POOL,
    compute=_waste,
    pages=(Page.CLUSTER, Page.CAPACITY),
)
