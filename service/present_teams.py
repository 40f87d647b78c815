"""
What is stored of a team's work, by the team's present name.

The store keeps the name of the day on which work was read. Of before and after a rename it is one team's: one
line, one share where teams share evenly.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from analytics.chargeback.distribution import Pool
from analytics.chargeback.extras import Lost
from analytics.chargeback.held import Held
from analytics.chargeback.line import Causes
from analytics.chargeback.quota_lines import QuotaLine, QuotaTime
from domain.tenant import Tenancy
from service.caused_time import Key


def of_held(held: Held, tenancy: Tenancy) -> Held:
    """The same sums; those of one team may still be in several rows."""
    names = held.usage["team"].unique().to_list()
    present = {name: now for name in names if (now := tenancy.present(name)) != name}
    if not present:
        return held
    return replace(held, usage=held.usage.with_columns(pl.col("team").replace(present)))


def of_causes(found: Mapping[Key, Causes], tenancy: Tenancy) -> dict[Key, Causes]:
    """Held time by line and cause, as `service.caused_time` gives it."""
    sums: dict[Key, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (day, kind, cluster, team, *others), causes in found.items():
        of_team = sums[day, kind, cluster, tenancy.present(team), *others]
        for cause, amount in causes.items():
            of_team[cause] += amount
    return {key: dict(causes) for key, causes in sums.items()}


def of_quotas(found: Mapping[Pool, Mapping[str, int]], tenancy: Tenancy) -> dict[Pool, dict[str, int]]:
    """Quota times time by pool and team."""
    sums: dict[Pool, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for pool, teams in found.items():
        for team, amount in teams.items():
            sums[pool][tenancy.present(team)] += amount
    return {pool: dict(teams) for pool, teams in sums.items()}


def of_lost(found: Iterable[Lost], tenancy: Tenancy) -> list[Lost]:
    """Running time that preemptions lost, and by whom."""
    return [
        replace(
            lost,
            owner=replace(lost.owner, team=tenancy.present(lost.owner.team)),
            preemptor=tenancy.present(lost.preemptor),
        )
        for lost in found
    ]


def of_quota_lines(found: Sequence[QuotaLine], tenancy: Tenancy) -> list[QuotaLine]:
    """Lines of quota, those of one team and holder in one."""
    sums: dict[QuotaLine, QuotaTime] = {}
    nothing = QuotaTime(0, 0, 0)
    for line in found:
        of_team = replace(line, team=tenancy.present(line.team), time=nothing)
        sums[of_team] = QuotaTime(*map(sum, zip(sums.get(of_team, nothing), line.time, strict=True)))
    return [replace(line, time=time) for line, time in sums.items()]
