"""Users who hold more of the interactive pool than the policy lets one user hold."""

from collections.abc import Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped
from analytics.interactive.domination import domination
from analytics.interactive.rows import NOW, POOL
from domain.metric import Ask, Metric, Page, Row, Sample, Unit


def _dominating(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """A lower bound where somebody may dominate of whom, or of whose GPUs, nobody knows."""
    found: list[Row] = []
    for labels, members in grouped(rows, POOL):
        told = domination(members, ask.policy)
        found += [{**labels, "user": "", "unknown": told.unknown}]
        found += [{**labels, "user": user, "unknown": False} for user in sorted(told.dominating(ask.policy))]
    return [
        Sample(
            labels=labels,
            value=len({row["user"] for row in members if row["user"]}),
            lower_bound=any(bool(row["unknown"]) for row in members),
        )
        for labels, members in grouped(found, ask.by)
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


METRIC = Metric(
    name="interactive_domination_users",
    unit=Unit.USERS,
    title="Users who dominate the interactive pool",
    definition=(
        "Users who hold more than 50 % (a setting) of the interactive pool of some model, while another"
        " interactive user waits, or while they hold more than half of the reserve. At least so many where"
        " interactive work holds GPUs whose size or user is not known."
    ),
    source="policy of the site",
    sql=NOW,
    labels=POOL,
    dimensions=POOL,
    compute=_dominating,
    pages=(Page.POLICY,),
)
