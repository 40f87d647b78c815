"""What a week says of each quota holder: its ratio, what it is owed, how much of it was seen."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from analytics.fairness.debt import carry_debt
from analytics.wastage.asked import GPU_TIME, bill_of, held_rows
from analytics.wastage.bill import Bill
from analytics.wastage.ratios import Ratio, hell_ratio, wastage_ratio
from analytics.wastage.rules import rules_of
from domain.calendar import Period
from domain.metric import Row
from domain.policy import Policy, QuotaRatio
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR, Window
from service.observation import share_of_window
from store.embedded import Store

NOTHING_SEEN: Final = "nothing was held under this quota in the week"

# The holder of a quota stands in place of the queue: without a queue it is the namespace.
_HOLDER: Final = "case when queue = '' then 'namespace/' || namespace else queue end"
_HELD: Final = f" (select * replace ({_HOLDER} as queue) from gpu_time) as gpu_time\n"  # noqa: S608 (ours)
_WAITED: Final = _HELD.replace("gpu_time", "own_failure_waiting")
_BY_HOLDER: Final = GPU_TIME.replace(" gpu_time\n", _HELD).replace(" own_failure_waiting\n", _WAITED)

# One row per pool and entity: its account as it stood at $as_of_ms, and the team or teams in it.
_SHARES: Final = """
select
    share_span.pool,
    share_span.entity,
    share_span.gpu_model,
    share_span.start_ms,
    share_span.entitled,
    share_span.held,
    share_span.opening_debt,
    (
        select string_agg(distinct team_share_span.team, ',' order by team_share_span.team)
        from team_share_span
        where
            team_share_span.cluster = share_span.cluster
            and team_share_span.pool = share_span.pool
            and team_share_span.entity = share_span.entity
            and team_share_span.start_ms < $as_of_ms
            and team_share_span.team <> ''
    ) as teams
from share_span
where
    share_span.cluster = $cluster
    and share_span.start_ms < $as_of_ms
    and share_span.until_ms >= $as_of_ms
order by share_span.pool, share_span.entity
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """
    A holder in a pool over a week.

    `ratio` is None where it is undefined, with the reason: on too little known activity too. Debt and use
    in GPU-hours, coverage the share of the week that was observed, as every figure on samples has it.
    """

    ratio: Fraction | None
    ratio_because: str
    debt: Fraction
    gpu_hours: Fraction
    coverage: Fraction
    teams: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that was measured of a cluster over a week."""

    policy: Policy
    observed: Fraction
    time: Mapping[str, list[Row]]
    shares: Mapping[tuple[str, str], Mapping[str, Any]]
    end_ms: int

    def of(self, pool: str, holder: str) -> Measured:
        """What the week says of a holder in a pool: in the GPU models of the pool."""
        share = self.shares.get((pool, holder))
        models = set(share["gpu_model"].split(", ")) if share and share["gpu_model"] else set()
        rows = [row for row in self.time.get(holder, []) if not models or row["gpu_model"] in models]
        # Work that waits after a failure may have no model yet; it is part of its queue's time all the same.
        found = bill_of(rows) if held_rows(rows) else Bill.empty()
        ratio = self._ratio(found)
        return Measured(
            ratio=ratio.value,
            ratio_because=ratio.undefined_because if held_rows(rows) else NOTHING_SEEN,
            debt=Fraction(0) if share is None else self._debt(share),
            gpu_hours=Fraction(found.held, MICRO_PER_GPU * MS_PER_HOUR),
            coverage=self.observed,
            teams=(share["teams"] or "") if share else "",
        )

    def _ratio(self, found: Bill) -> Ratio:
        """What is held against the quota, as the settings say; a lower bound takes no more than is sure."""
        if self.policy.quota_ratio is QuotaRatio.WASTAGE:
            return wastage_ratio(found)
        return hell_ratio(found, rules=rules_of(self.policy))

    def _debt(self, share: Mapping[str, Any]) -> Fraction:
        """What the cluster owes when the week ends."""
        owed = carry_debt(
            share["opening_debt"],
            gap_gpus=(share["entitled"] - share["held"]) / MICRO_PER_GPU,
            elapsed_ms=self.end_ms - share["start_ms"],
            half_life=self.policy.debt_half_life,
        )
        return Fraction(owed)


def evidence(store: Store, cluster: str, period: Period, policy: Policy) -> Evidence:
    """What was measured of a cluster over a week, as known at its end."""
    asked = {"as_of_ms": period.end_ms, "window_start_ms": period.start_ms}
    window = Window(start_ms=period.start_ms, end_ms=period.end_ms)
    seen = share_of_window(store, window, policy=policy, samples=True, clusters=(cluster,))
    time: dict[str, list[Row]] = defaultdict(list)
    for row in store.rows(_BY_HOLDER, asked):
        if row["cluster"] == cluster:
            time[str(row["queue"])].append(row)
    shares = {
        (str(row["pool"]), str(row["entity"])): row
        for row in store.rows(_SHARES, {"cluster": cluster, "as_of_ms": period.end_ms})
    }
    return Evidence(
        policy=policy,
        observed=seen or Fraction(0),
        time=time,
        shares=shares,
        end_ms=period.end_ms,
    )
