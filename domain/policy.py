"""Every threshold of the product, named, with its unit and its default."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from enum import StrEnum
from math import isfinite
from typing import Final
from zoneinfo import ZoneInfo

from domain.errors import PolicyError
from domain.facts import ObjectKind
from domain.gpu_sample import GPU_METRICS
from domain.window import MS_PER_SECOND
from domain.workload import ServiceClass

# Which thresholds have which range.
LENGTHS: Final = (
    *("window", "phantom_reservation_after", "debt_half_life", "source_stale_after"),
    *("event_source_stale_after", "gpu_source_stale_after", "gpu_source_gone_after", "buy_wait"),
    *("startup_limit", "idle_after", "long_run", "long_run_checkpoint_budget"),
    *("assumed_checkpoint_interval", "short_run", "quota_proposal_expires_after"),
    *("protection_window", "scheduler_stalled_after", "slowdown_shortest_run", "ageing_every"),
)
RATIOS: Final = (
    *("interactive_reserve_ratio", "domination_ratio", "lint_one_class_ratio", "queue_cap_warn_ratio"),
    *("buy_held_ratio", "buy_productive_ratio", "erosion_from_ratio", "ageing_ratio"),
    *("quota_tolerated_ratio", "quota_largest_penalty", "quota_step", "quota_floor", "quota_least_coverage"),
)
# Shares under or above which something is accused: with 0 all would be, or nothing.
SHARES: Final = ("idle_below", "resident_above", "least_samples")
# The least value of numbers that have no highest one.
LEAST: Final = {
    **dict.fromkeys(("few_below", "cumulative_wait_factor", "queue_cap_workloads"), 1),
    **dict.fromkeys(("buy_days", "buy_of_days", "quota_good_weeks", "quota_gift_cap"), 1),
    **dict.fromkeys(("quota_penalty_slope", "quota_least_gpu_hours"), 0),
}

# Of what was bound, no more is looked at: analytics/fragmentation/beside.py.
_LOOKED_BACK: Final = timedelta(days=7)

_UTC: Final = ZoneInfo("UTC")
# The periods of budgets, as domain.calendar cuts them.
PERIODS: Final = ("day", "week", "month")


class QuotaRatio(StrEnum):
    """What of a week is held against a quota: own failures, or all that was wasted."""

    HELL = "hell"
    WASTAGE = "wastage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a service class was promised: p99 and starvation stay below `wait`; alert window."""

    wait: timedelta
    window: timedelta


def _targets() -> dict[ServiceClass, Target]:
    day = timedelta(hours=24)
    return {
        ServiceClass.INTERACTIVE: Target(wait=timedelta(minutes=5), window=timedelta(hours=6)),
        ServiceClass.BATCH: Target(wait=timedelta(minutes=60), window=day),
        ServiceClass.BEST_EFFORT: Target(wait=timedelta(hours=24), window=day),
        ServiceClass.UNCLASSIFIED: Target(wait=timedelta(minutes=60), window=day),
    }


def _checkpoint_budgets() -> dict[str, timedelta]:
    return {ServiceClass.BATCH.value: timedelta(minutes=15), "reserved-training": timedelta(minutes=60)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    The thresholds. Lengths are timedelta; numbers say their unit.

    Raises:
        PolicyError: a length is not positive, or a number is out of its range.
    """

    targets: dict[ServiceClass, Target] = field(default_factory=_targets)
    window: timedelta = timedelta(hours=24)
    few_below: int = 5
    skew_tolerated: timedelta = timedelta(seconds=60)
    # A shorter run counts as one of this length, so that the slowdown of a moment's work says something.
    slowdown_shortest_run: timedelta = timedelta(seconds=60)
    phantom_reservation_after: timedelta = timedelta(minutes=30)
    cumulative_wait_factor: int = 3
    debt_half_life: timedelta = timedelta(days=7)
    source_stale_after: timedelta = timedelta(minutes=3)
    # No bookmarks come for Events: a quiet watch is known good only when it ends, after 5 to 10 minutes.
    event_source_stale_after: timedelta = timedelta(minutes=15)
    # Samples may be minutes apart, and a Prometheus repeats a series for 5 minutes after its end. A source
    # that is silent for so long, while others of its cluster are not, was taken away.
    gpu_source_stale_after: timedelta = timedelta(minutes=15)
    gpu_source_gone_after: timedelta = timedelta(days=7)
    # Classes whose work may be stopped for others, and moved by a repack.
    preemptible_classes: tuple[ServiceClass, ...] = (ServiceClass.BATCH, ServiceClass.BEST_EFFORT)
    # Work of these classes should not be preempted again within so long.
    protected_classes: tuple[ServiceClass, ...] = (ServiceClass.INTERACTIVE, ServiceClass.BATCH)
    protection_window: timedelta = timedelta(hours=4)
    # A scheduler that binds nothing for so long, while work waits that it could place, has stalled.
    scheduler_stalled_after: timedelta = timedelta(minutes=5)
    # What age adds to a priority: after each such length of waiting a share of the class value more.
    ageing_every: timedelta = timedelta(hours=6)
    ageing_ratio: float = 0.10
    # The part of a pool kept for interactive work; what it may preempt counts as room only if told so.
    interactive_reserve_ratio: float = 0.20
    reserve_counts_preemptible: bool = False
    # One user dominates with more than this of the interactive pool.
    domination_ratio: float = 0.50
    lint_one_class_ratio: float = 0.90
    queue_cap_workloads: int = 500
    queue_cap_warn_ratio: float = 0.85
    # Buy, where all hold on so many of so many days; from the erosion ratio on waits begin to grow.
    buy_held_ratio: float = 0.95
    buy_productive_ratio: float = 0.85
    buy_wait: timedelta = timedelta(hours=3)
    buy_days: int = 5
    buy_of_days: int = 7
    erosion_from_ratio: float = 0.85
    # Wastage: start-up beyond the limit is charged; activity below the share for so long is idle, and with
    # more than that share of the memory in use resident; on fewer samples nobody is accused.
    startup_limit: timedelta = timedelta(minutes=5)
    idle_below: float = 0.05
    idle_after: timedelta = timedelta(minutes=15)
    resident_above: float = 0.5
    least_samples: float = 0.8
    # Serving workloads, by `namespace/name` with wildcards, whose resident idleness is not charged.
    serving_workloads: tuple[str, ...] = ()
    # How old a checkpoint may grow, by priority class or service class; no run above `long_run` may go
    # longer than its own budget. Where nobody published one, the assumed interval is lost at least,
    # and from the second failure on all of a run that is no longer than `short_run`.
    checkpoint_budgets: dict[str, timedelta] = field(default_factory=_checkpoint_budgets)
    long_run: timedelta = timedelta(hours=4)
    long_run_checkpoint_budget: timedelta = timedelta(minutes=30)
    assumed_checkpoint_interval: timedelta = timedelta(minutes=15)
    short_run: timedelta = timedelta(hours=2)
    # Quota proposals, in shares of the agreed quota: a ratio above the tolerated one takes slope times the
    # excess, at most the largest penalty; a week moves at most a step, never below the floor or above the
    # cap; a quota goes up again after so many good weeks; on less than so much nothing moves.
    quota_ratio: QuotaRatio = QuotaRatio.HELL
    quota_tolerated_ratio: float = 0.15
    quota_penalty_slope: float = 1.0
    quota_largest_penalty: float = 0.30
    quota_step: float = 0.10
    quota_floor: float = 0.50
    quota_gift_cap: float = 1.20
    quota_good_weeks: int = 2
    quota_least_gpu_hours: float = 50.0
    quota_least_coverage: float = 0.9
    quota_proposal_expires_after: timedelta = timedelta(days=7)
    # GPU-hours that a team may hold in a day, week or month of the billing zone, by team and by that word.
    gpu_hour_budgets: dict[str, dict[str, float]] = field(default_factory=dict)
    # Likewise in the currency of the statement.
    money_budgets: dict[str, dict[str, float]] = field(default_factory=dict)
    budget_zone: tzinfo = _UTC
    # Limits of alerts, by the alert's name, in the unit of its metric; those that are other settings
    # are set there.
    alert_limits: dict[str, float] = field(default_factory=dict)
    # Kinds of job objects that a site has beside those that everybody knows.
    job_kinds: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for key, value, expected in self._out_of_range():
            message = f"policy.{key} = {value}: expected {expected}"
            raise PolicyError(message)

    def _out_of_range(self) -> Iterator[tuple[str, object, str]]:
        """Key, value, and what was expected instead, of what has no sense; a NaN has none."""
        lengths = {name: getattr(self, name) for name in LENGTHS}
        for service_class, target in self.targets.items():
            lengths |= {f"targets.{service_class}.wait": target.wait}
            lengths |= {f"targets.{service_class}.window": target.window}
        lengths |= {f"checkpoint_budgets.{name}": budget for name, budget in self.checkpoint_budgets.items()}
        for name, length in lengths.items():
            if length <= timedelta():
                yield name, length, "a positive length, for example 5m"
        if self.skew_tolerated < timedelta():
            yield "skew_tolerated", self.skew_tolerated, "a length of at least 0, for example 60s"
        for name in RATIOS:
            if not 0 <= getattr(self, name) <= 1:
                yield name, getattr(self, name), "a share from 0 to 1"
        for name in SHARES:
            if not 0 < getattr(self, name) <= 1:
                yield name, getattr(self, name), "a share above 0 and at most 1"
        for name, least in LEAST.items():
            if not getattr(self, name) >= least:
                yield name, getattr(self, name), f"a number of at least {least}"
        yield from self._numbers_out_of_range()
        yield from self._too_long()

    def _too_long(self) -> Iterator[tuple[str, object, str]]:
        if self.scheduler_stalled_after > _LOOKED_BACK:
            yield "scheduler_stalled_after", self.scheduler_stalled_after, "at most 7d"
        if self.buy_days > self.buy_of_days:
            yield "buy_days", self.buy_days, f"at most buy_of_days, which is {self.buy_of_days}"

    def _numbers_out_of_range(self) -> Iterator[tuple[str, object, str]]:
        for name, limit in self.alert_limits.items():
            if not (isfinite(limit) and limit >= 0):
                yield f"alert_limits.{name}", limit, "a number of at least 0"
        for name, what in (("gpu_hour_budgets", "GPU-hours"), ("money_budgets", "an amount")):
            given: dict[str, dict[str, float]] = getattr(self, name)
            for team, budgets in given.items():
                for period, amount in budgets.items():
                    if period not in PERIODS or not amount > 0:
                        expected = f"one of {', '.join(PERIODS)} with {what} above 0"
                        yield f"{name}.{team}.{period}", amount, expected

    @property
    def budget_periods(self) -> frozenset[str]:
        """The periods of which anybody has a budget."""
        agreed = (*self.gpu_hour_budgets.values(), *self.money_budgets.values())
        return frozenset(period for budgets in agreed for period in budgets)

    def stale_after(self, kind: str) -> timedelta:
        """
        How long after its last good reading a kind of object, or GPU metrics, counts as stale.

        >>> Policy().stale_after("Pod") < Policy().stale_after("Event")
        True
        """
        if kind == ObjectKind.CHECKPOINT:
            return timedelta.max  # nobody asks for them: they come when a job has saved its work
        if kind == GPU_METRICS:
            return self.gpu_source_stale_after
        if kind == ObjectKind.IMPORTED_JOB:
            return timedelta.max  # a table is read once: nobody waits for more of it
        return self.event_source_stale_after if kind == ObjectKind.EVENT else self.source_stale_after


_USUAL: Final = Policy()


def patience_ms(kind: str, policy: Policy = _USUAL) -> int:
    """
    The silence after which a kind of objects is not observed any more, at least the usual one.

    Sights closer than the usual patience are kept as one stretch, so that a shorter one cannot be
    told. A sample of a GPU brings its own length, and leaves none.
    """
    if kind == GPU_METRICS:
        return 0
    longest = max(policy.stale_after(kind), _USUAL.stale_after(kind))
    return int(longest.total_seconds() * MS_PER_SECOND)
