"""What quota proposals go by: the settings, and what was measured of each quota holder."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from domain.errors import PolicyError
from domain.policy import Policy, QuotaRatio


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRules:
    """
    What movements go by; `rules_of` makes them of the policy. Shares are of the agreed quota.

    Args:
        tolerated_ratio: what a ratio exceeds before anything is taken.
        slope: penalty per excess, `k`.
        largest_penalty: share that a penalty takes at most.
        step: share that one period moves at most, but always one unit.
        floor: share that is never taken, rounded up to units.
        gift_cap: share that a quota with gifts reaches at most.
        good_periods: so many in a row before a quota goes up again.
        least_gpu_hours, least_coverage: on less nothing moves.
        ratio: which ratio of a week counts.

    Raises:
        PolicyError: a share that makes no sense.
    """

    tolerated_ratio: Fraction
    slope: Fraction
    largest_penalty: Fraction
    step: Fraction
    floor: Fraction
    gift_cap: Fraction
    good_periods: int
    least_gpu_hours: Fraction
    least_coverage: Fraction
    ratio: QuotaRatio

    def __post_init__(self) -> None:
        for name in ("tolerated_ratio", "largest_penalty", "step", "floor", "least_coverage"):
            if not 0 <= getattr(self, name) <= 1:
                message = f"quota.{name} = {getattr(self, name)}: expected a share between 0 and 1"
                raise PolicyError(message)
        if self.gift_cap < 1 or self.slope < 0 or self.good_periods < 1:
            message = (
                f"quota.gift_cap = {self.gift_cap}, quota.slope = {self.slope}, quota.good_periods ="
                f" {self.good_periods}: expected at least 1, 0 and 1"
            )
            raise PolicyError(message)


def rules_of(policy: Policy) -> QuotaRules:
    """
    The rules of a policy, whose decimals are taken as they are written.

    >>> rules_of(Policy()).tolerated_ratio
    Fraction(3, 20)

    Raises:
        PolicyError: a share that makes no sense.
    """
    return QuotaRules(
        tolerated_ratio=Fraction(str(policy.quota_tolerated_ratio)),
        slope=Fraction(str(policy.quota_penalty_slope)),
        largest_penalty=Fraction(str(policy.quota_largest_penalty)),
        step=Fraction(str(policy.quota_step)),
        floor=Fraction(str(policy.quota_floor)),
        gift_cap=Fraction(str(policy.quota_gift_cap)),
        good_periods=policy.quota_good_weeks,
        least_gpu_hours=Fraction(str(policy.quota_least_gpu_hours)),
        least_coverage=Fraction(str(policy.quota_least_coverage)),
        ratio=policy.quota_ratio,
    )


DEFAULT_RULES = rules_of(Policy())


class Leftover(StrEnum):
    """Where quota goes that was cut and given to nobody."""

    COHORT = "added to the cohort's own quota"
    NOT_CUT = "the cut is only as large as its gifts"
    UNUSED = "unused until given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """
    A quota holder in one pool, at the end of a period. Quotas are whole GPUs.

    Args:
        name: unique within the pool.
        agreed: the baseline, edited only by people.
        live: what the cluster says now.
        ratio: hell (or wastage) ratio of the period; None where it is undefined.
        debt: GPU-hours, positive when the cluster owes.
        gpu_hours: held in the period.
        coverage: share of the period that was really observed.
        good_before: good periods in a row before this one.
    """

    name: str
    agreed: int
    live: int
    ratio: Fraction | None
    debt: Fraction
    gpu_hours: Fraction
    coverage: Fraction
    good_before: int = 0

    def __post_init__(self) -> None:
        if self.agreed < 0 or self.live < 0 or self.good_before < 0:
            message = (
                f"quota of {self.name}: agreed {self.agreed}, live {self.live}, good periods"
                f" {self.good_before}: expected none below 0"
            )
            raise PolicyError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """
    The holders that share a pool (cohort and flavor).

    Args:
        holders: in any order.
        unit: GPUs that move together: 1, or the node multiple that is set.
        leftover: what becomes of quota that nobody is given.
        spare: live quota of the cohort itself that earlier proposals put there, beyond its own.
        base: the cohort's own, as agreed; it never moves, and is told.
    """

    holders: tuple[Holder, ...]
    unit: int = 1
    leftover: Leftover = Leftover.COHORT
    spare: int = 0
    base: int = 0

    def __post_init__(self) -> None:
        names = [holder.name for holder in self.holders]
        if self.unit < 1 or self.spare < 0 or len(set(names)) < len(names):
            message = (
                f"pool of {', '.join(names)}: unit {self.unit}, spare {self.spare}: expected a unit of at"
                " least 1, spare of at least 0, and each holder once"
            )
            raise PolicyError(message)

    @property
    def agreed(self) -> int:
        """The sum that live quotas never exceed, GPUs."""
        return sum(holder.agreed for holder in self.holders)

    @property
    def free(self) -> int:
        """Agreed quota that is live nowhere, GPUs; negative where people edited it."""
        return self.agreed - self.spare - sum(holder.live for holder in self.holders)


def is_measured(holder: Holder, rules: QuotaRules = DEFAULT_RULES) -> bool:
    """Whether enough is known of the period for anything to move."""
    return (
        holder.ratio is not None
        and holder.gpu_hours >= rules.least_gpu_hours
        and holder.coverage >= rules.least_coverage
    )


def penalty(holder: Holder, rules: QuotaRules = DEFAULT_RULES) -> Fraction:
    """
    GPUs that the period's excess costs: min(largest, k x excess) of the agreed quota; rule 1.

    0 where too little is known; the quota then stays where it is.
    """
    if not is_measured(holder, rules) or holder.ratio is None:
        return Fraction(0)
    excess = max(Fraction(0), holder.ratio - rules.tolerated_ratio)
    return min(rules.largest_penalty, rules.slope * excess) * holder.agreed


def good_periods(holder: Holder, rules: QuotaRules = DEFAULT_RULES) -> int:
    """Good periods in a row, this one included; a period of which too little is known does not count."""
    if not is_measured(holder, rules):
        return holder.good_before
    return 0 if penalty(holder, rules) > 0 else holder.good_before + 1


def step(holder: Holder, unit: int, rules: QuotaRules = DEFAULT_RULES) -> int:
    """GPUs that one period moves at most, in whole units; rule 1."""
    return max(down_to_units(rules.step * holder.agreed, unit), unit)


def lowest(holder: Holder, unit: int, rules: QuotaRules = DEFAULT_RULES) -> int:
    """GPUs below which nothing is taken: the floor's share, rounded up to units; rule 2."""
    return -down_to_units(-rules.floor * holder.agreed, unit)


def highest(holder: Holder, rules: QuotaRules = DEFAULT_RULES) -> Fraction:
    """GPUs that a quota with gifts reaches at most; rule 5."""
    return rules.gift_cap * holder.agreed


def down_to_units(gpus: Fraction | int, unit: int) -> int:
    """
    The largest multiple of the unit that is not above.

    >>> down_to_units(Fraction(31, 2), 4), down_to_units(Fraction(-31, 2), 4)
    (12, -16)
    """
    return int(gpus // unit) * unit


def scaled_weight(weight: Decimal, *, agreed: int, proposed: int) -> Decimal:
    """
    A fair-sharing weight moved like a quota: w x (1 - p) for a cut by p, w x (1 + g) for a gift of g.

    >>> scaled_weight(Decimal(2), agreed=10, proposed=9)
    Decimal('1.8')

    Raises:
        PolicyError: nothing was agreed, so there is no share.
    """
    if agreed <= 0:
        message = f"weight {weight} with an agreed quota of {agreed}: expected an agreed quota above 0"
        raise PolicyError(message)
    return weight * proposed / agreed
