"""The largest user's part of the interactive pool."""

from collections.abc import Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped
from analytics.interactive.domination import Domination, domination
from analytics.interactive.rows import NOW, POOL
from domain.metric import Ask, Metric, Page, Row, Sample, Unit


def _largest(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    found: list[Row] = [
        {**labels, "of": domination(members, ask.policy)} for labels, members in grouped(rows, POOL)
    ]
    return [_of_group(labels, members) for labels, members in grouped(found, ask.by)] or [
        Sample.undefined({}, NOTHING_OBSERVED)
    ]


def _of_group(labels: dict[str, str], members: Sequence[Row]) -> Sample:
    known = [pool for pool in (row["of"] for row in members) if isinstance(pool, Domination) and pool.pool]
    if not known:
        return Sample.undefined(labels, "the pool has no GPUs that are schedulable or held")
    return Sample(
        labels=labels,
        value=max(pool.largest for pool in known),
        lower_bound=any(pool.unknown for pool in known),
    )


METRIC = Metric(
    name="interactive_domination_ratio",
    unit=Unit.RATIO,
    title="Largest user's part of the interactive pool",
    definition=(
        "GPUs that the largest interactive user holds, over the interactive pool: 20 % of the pool's GPUs (a"
        " setting), or what interactive work holds where that is more. Over several pools the greatest."
        " Work whose user is not known makes a lower bound."
    ),
    source="policy of the site",
    sql=NOW,
    labels=POOL,
    dimensions=POOL,
    compute=_largest,
    pages=(Page.POLICY,),
)
