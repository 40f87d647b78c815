"""Users who hold more of the interactive pool than the policy lets one user hold."""

from collections.abc import Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped
from analytics.interactive.domination import domination
from analytics.interactive.rows import NOW, POOL
from domain.metric import Ask, Metric, Page, Row, Sample, Unit


def _dominating(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    found: list[Row] = [
        {**labels, "user": user, "value": value}
        for labels, members in grouped(rows, POOL)
        for user, value in [("", 0), *_users(members, ask)]
    ]
    return [
        Sample(labels=labels, value=len({row["user"] for row in members if row["value"]}))
        for labels, members in grouped(found, ask.by)
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]


def _users(members: Sequence[Row], ask: Ask) -> list[tuple[str, int]]:
    return [(user, 1) for user in sorted(domination(members, ask.policy).dominating(ask.policy))]


METRIC = Metric(
    name="interactive_domination_users",
    unit=Unit.USERS,
    title="Users who dominate the interactive pool",
    definition=(
        "Users who hold more than 50 % (a setting) of the interactive pool of some model, while another"
        " interactive user waits, or while they hold more than half of the reserve."
    ),
    source="policy of the site",
    sql=NOW,
    labels=POOL,
    dimensions=POOL,
    compute=_dominating,
    pages=(Page.POLICY,),
)
