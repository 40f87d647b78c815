"""Fragmentation as the paper has it, to be held against its figures."""

from collections.abc import Sequence
from fractions import Fraction

from analytics.evaluate import NOTHING_OBSERVED
from analytics.fragmentation.paper import of_pool
from analytics.fragmentation.pools import INVENTORY, POOL, pools
from domain.metric import Ask, Metric, Page, Row, Sample, Unit


def _as_in_the_paper(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    groups: dict[tuple[str, ...], list[tuple[Fraction, int] | None]] = {}
    for labels, pool in pools(rows):
        groups.setdefault(tuple(labels[name] for name in ask.by), []).append(of_pool(pool))
    samples = []
    for key, found in groups.items():
        labels = dict(zip(ask.by, key, strict=True))
        known = [one for one in found if one is not None]
        total = sum(cards for _, cards in known)
        if total:
            lost = sum((fragments for fragments, _ in known), Fraction(0))
            # The CPUs of nodes and pods are not collected: some of what a pod cannot use is missing.
            samples.append(Sample(labels=labels, value=float(lost / total), lower_bound=True))
        else:
            samples.append(Sample.undefined(labels, "no pod was asked in the last 7 days, or no whole GPUs"))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


METRIC = Metric(
    name="fgd_paper_ratio",
    unit=Unit.RATIO,
    title="Fragmentation as in the FGD paper",
    definition=(
        "Free parts of whole GPUs that a pod of the shapes of the last 7 days cannot use, over all of them,"
        " as the paper writes it: pods that ask no GPU count among the shapes, and to them all that is free"
        " is a fragment. For comparison with published figures; fragment_waste_ratio is ours. A lower bound,"
        " for CPUs are not collected, and a node that lacks them does not count as unusable."
    ),
    source="Weng et al., USENIX ATC 2023, section 3",
    sql=INVENTORY,
    labels=POOL,
    dimensions=POOL,
    compute=_as_in_the_paper,
    pages=(Page.CLUSTER,),
    exported=False,
)
