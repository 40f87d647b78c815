"""
GPU-hours, or money, that teams have agreed to burn in a day, week or month, and what of it is burned.

Money is the effective cost of what a team's pods hold, by the price of their node; what a team bears of
idle capacity or of shared costs is in its statement only.

Definitions name a forecast and no method: here what is burned so far goes on at the same pace to the end
of the period. In its first tenth that says little, and the forecast is flagged `few`. A team that has
never asked for a GPU is not known, and its budget not shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analytics.evaluate import grouped, whole
from domain import calendar
from domain.alert import AlertRule, Comparison, Limit, Severity
from domain.metric import Ask, Compute, Row, Sample
from domain.policy import PERIODS, Policy
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR

NO_BUDGET: Final = "no budget of GPU-hours is set: policy.gpu_hour_budgets in the settings"
NO_MONEY: Final = "no budget of money is set: policy.money_budgets in the settings"
# Parts of a currency unit in which prices are kept.
NANO: Final = 10**9
_SOON: Final = 0.1

HELD_SO_FAR: Final = """\
-- One row per team that has asked for GPUs: GPU-time that its pods held since the day, week and month began
-- that go on at $as_of_ms, micro-GPU times milliseconds; and how many pods held an unknown share in them.
with piece as (
    select team, micro_gpus, bound_ms, coalesce(least(released_ms, $as_of_ms), $as_of_ms) as until_ms
    from gpu_holding
    where
        bound_ms < $as_of_ms
        and coalesce(released_ms > least($day_start_ms, $week_start_ms, $month_start_ms), true)
        and open_until_ms >= least($day_start_ms, $week_start_ms, $month_start_ms)
    union all
    select distinct team, 0 as micro_gpus, $as_of_ms as bound_ms, $as_of_ms as until_ms
    from seen_before($as_of_ms)
)

select
    team,
    coalesce(sum(
        micro_gpus::hugeint * greatest(until_ms - greatest(bound_ms, $day_start_ms), 0)
    ), 0) as day_amount,
    coalesce(sum(
        micro_gpus::hugeint * greatest(until_ms - greatest(bound_ms, $week_start_ms), 0)
    ), 0) as week_amount,
    coalesce(sum(
        micro_gpus::hugeint * greatest(until_ms - greatest(bound_ms, $month_start_ms), 0)
    ), 0) as month_amount,
    count(*) - count(micro_gpus) as unmeasured
from piece
group by team
"""

SPENT_SO_FAR: Final = """\
-- One row per team that has asked for GPUs: what its pods' GPU-time costs since the day, week and month began
-- that go on at $as_of_ms, billionths of the currency times micro-GPU-milliseconds per GPU-hour; and how many
-- pods held an unknown share, or 1 more where some of their time on a node has no price.
with held as (
    select
        cluster, node, team, micro_gpus,
        greatest(bound_ms, least($day_start_ms, $week_start_ms, $month_start_ms)) as bound_ms,
        coalesce(least(released_ms, $as_of_ms), $as_of_ms) as until_ms
    from gpu_holding
    where
        bound_ms < $as_of_ms
        and coalesce(released_ms > least($day_start_ms, $week_start_ms, $month_start_ms), true)
        and open_until_ms >= least($day_start_ms, $week_start_ms, $month_start_ms)
),

priced as (
    select
        held.team,
        held.micro_gpus::hugeint * node_price.nano_price as rate,
        greatest(held.bound_ms, node_price.start_ms) as bound_ms,
        least(held.until_ms, coalesce(node_price.end_ms, held.until_ms)) as until_ms
    from held
    inner join node_price
        on held.cluster = node_price.cluster
        and held.node = node_price.node
        and held.until_ms > node_price.start_ms
        and coalesce(held.bound_ms < node_price.end_ms, true)
),

-- Prices of a node do not overlap: all is priced where as much time is priced as was held.
piece as (
    select team, rate, bound_ms, until_ms, until_ms - bound_ms as priced_ms, 0 as unmeasured
    from priced
    union all
    select
        team, 0 as rate, until_ms as bound_ms, until_ms, bound_ms - until_ms as priced_ms,
        case when micro_gpus is null then 1 else 0 end as unmeasured
    from held
    union all
    select distinct
        team, 0 as rate, $as_of_ms as bound_ms, $as_of_ms as until_ms, 0 as priced_ms, 0 as unmeasured
    from seen_before($as_of_ms)
)

select
    team,
    coalesce(sum(rate * greatest(until_ms - greatest(bound_ms, $day_start_ms), 0)), 0) as day_amount,
    coalesce(sum(rate * greatest(until_ms - greatest(bound_ms, $week_start_ms), 0)), 0) as week_amount,
    coalesce(sum(rate * greatest(until_ms - greatest(bound_ms, $month_start_ms), 0)), 0) as month_amount,
    sum(unmeasured) + case when sum(priced_ms) < 0 then 1 else 0 end as unmeasured
from piece
group by team
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a budget is of: where the policy has it, the unit of a row's amounts, what to say without one."""

    of: Callable[[Policy], Mapping[str, Mapping[str, float]]]
    amounts_per_unit: int
    missing: str


GPU_HOURS: Final = Kind(
    of=lambda policy: policy.gpu_hour_budgets,
    amounts_per_unit=MICRO_PER_GPU * MS_PER_HOUR,
    missing=NO_BUDGET,
)
MONEY: Final = Kind(
    of=lambda policy: policy.money_budgets,
    amounts_per_unit=MICRO_PER_GPU * MS_PER_HOUR * NANO,
    missing=NO_MONEY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burned:
    """One budget: what was agreed and burned, and which part of its period has passed."""

    budget: float
    burned: float
    passed: float
    lower_bound: bool

    @property
    def forecast(self) -> float:
        """What will be burned at the end of the period at the pace so far."""
        return self.burned / self.passed


def of_budgets(
    figure: Callable[[Burned], float], *, kind: Kind = GPU_HOURS, forecast: bool = False
) -> Compute:
    """A `compute` that tells a figure of each team's budgets, with the label `period`."""

    def sample(labels: Mapping[str, str], budget: Burned) -> Sample:
        few = forecast and budget.passed < _SOON
        return Sample(labels=labels, value=figure(budget), lower_bound=budget.lower_bound, few=few)

    return _of_groups(sample, kind)


def _agreed(labels: Mapping[str, str], budget: Burned) -> Sample:
    return Sample(labels=labels, value=budget.budget)


def _of_groups(sample: Callable[[Mapping[str, str], Burned], Sample], kind: Kind) -> Compute:
    """A sample for each period of each group; teams without any budget have none, with the reason."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            found = [
                sample({**labels, "period": period}, budget)
                for period, budget in _budgets(members, ask, kind)
            ]
            samples += found or [Sample.undefined(labels, kind.missing)]
        return samples or [Sample.undefined({}, kind.missing)]

    return compute


def _budgets(members: Sequence[Row], ask: Ask, kind: Kind) -> Iterator[tuple[str, Burned]]:
    """The budgets of a group of teams by period, added up; a team that held nothing has burned nothing."""
    for period in PERIODS:
        by_team = {
            row["team"]: budgets[period]
            for row in members
            if period in (budgets := kind.of(ask.policy).get(str(row["team"]), {}))
        }
        if not by_team:
            continue
        own = [row for row in members if row["team"] in by_team]
        going_on = calendar.running(ask.as_of_ms, ask.policy.budget_zone, calendar.Unit(period))
        amount = sum(whole(row, f"{period}_amount") for row in own)
        yield (
            period,
            Burned(
                budget=sum(by_team.values()),
                burned=amount / kind.amounts_per_unit,
                passed=(ask.as_of_ms - going_on.start_ms) / (going_on.end_ms - going_on.start_ms),
                lower_bound=any(whole(row, "unmeasured") for row in own),
            ),
        )


agreed: Final = _of_groups(_agreed, GPU_HOURS)
agreed_money: Final = _of_groups(_agreed, MONEY)


def alerts(kind: str, *, burned: str, of: str) -> tuple[AlertRule, ...]:
    """
    The alerts at 80 and 100 % of a budget, by the names `Gpu<kind>Budget(Nearly)Burned`.

    >>> [rule.name for rule in alerts("Hour", burned="burned", of="GPU-hours")]
    ['GpuHourBudgetNearlyBurned', 'GpuHourBudgetBurned']
    """
    all_burned = f"Gpu{kind}BudgetBurned"

    def rule(name: str, summary: str, share: float, severity: Severity, *louder: str) -> AlertRule:
        return AlertRule(
            name=name,
            summary=f"team {{team}} has {burned} {summary}",
            description=(
                f"{{value}} of the budget of the {{period}} is {burned}; this is told from {{limit}} on."
            ),
            link="chargeback?team={team}",
            limit=Limit(times=share),
            comparison=Comparison.AT_LEAST,
            identity=("team", "period"),
            severity=severity,
            inhibited_by=louder,
        )

    nearly = f"{{value}} of its {of} of the {{period}}"
    return (
        rule(f"Gpu{kind}BudgetNearlyBurned", nearly, 0.8, Severity.INFO, all_burned),
        rule(all_burned, f"{nearly}, {{limit}} or more", 1.0, Severity.WARNING),
    )
