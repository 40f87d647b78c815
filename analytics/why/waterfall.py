"""What the priority of a waiting workload is made of, and when age lifts it above the next class."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from domain.policy import Policy
from domain.window import MS_PER_SECOND

_USUAL: Final = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """
    The lines of a priority, in the order in which they decide.

    `outranks_at_ms` is when it comes before a fresh workload of the next class if it still waits then: in the
    past where it does already, None where there is no class above or age never gets there. Quota use is what
    the team's queue holds of its quota; debt is what the cluster owes the team, GPU-hours. None is unknown.
    """

    class_name: str
    class_value: int
    ageing_bonus: float
    next_class: str
    next_value: int | None
    outranks_at_ms: int | None
    submitted_ms: int
    quota_used_ratio: float | None
    fairness_debt_gpu_hours: float | None

    @property
    def value(self) -> float:
        """The class value with the bonus for age."""
        return self.class_value + self.ageing_bonus


def ageing_step(value: int, next_value: int | None, policy: Policy) -> Fraction:
    """
    What age adds each time: a share of the class value, or where that is not above 0 of the way to the next.

    >>> [str(ageing_step(value, 1000, Policy())) for value in (500, 0, -1000)]
    ['50', '100', '200']
    """
    return _step(value, next_value, policy.ageing_ratio)


@lru_cache(maxsize=256)
def _step(value: int, next_value: int | None, ratio: float) -> Fraction:
    share = Fraction(ratio).limit_denominator(10_000)
    if value > 0:
        return share * value
    return share * (next_value - value) if next_value is not None else Fraction(0)


def waterfall(  # noqa: PLR0913 - the lines of a priority
    class_name: str,
    classes: Mapping[str, int],
    *,
    value: int,
    waited_ms: int,
    as_of_ms: int,
    submitted_ms: int,
    quota_used_ratio: float | None = None,
    fairness_debt_gpu_hours: float | None = None,
    policy: Policy = _USUAL,
) -> Waterfall:
    """
    The priority of a workload that has waited so long by `as_of_ms`.

    Args:
        class_name: its priority class; empty without one.
        classes: values of all classes by name.
        value: of its own class, which may be gone by now.
        waited_ms: on the waiting clock: time held by its owner does not age it.
        as_of_ms: the instant asked about.
        submitted_ms: when it was submitted.
        quota_used_ratio: what its queue holds, by its quota.
        fairness_debt_gpu_hours: what its team is owed.
        policy: how age counts.

    >>> one = waterfall("low", {"low": 1000, "mid": 1150}, value=1000, waited_ms=6 * 3_600_000,
    ...                 as_of_ms=6 * 3_600_000, submitted_ms=0)
    >>> one.value, one.next_class, one.outranks_at_ms // 3_600_000
    (1100.0, 'mid', 12)
    """
    above = [(other, name) for name, other in classes.items() if other > value]
    next_value, next_class = min(above, default=(None, ""))
    step = ageing_step(value, next_value, policy)
    every_ms = round(policy.ageing_every.total_seconds() * MS_PER_SECOND)
    outranks_at_ms = None
    if next_value is not None and step > 0:
        # The first step after which it is above, not level.
        steps = (next_value - value) // step + 1
        outranks_at_ms = as_of_ms - waited_ms + int(steps) * every_ms
    return Waterfall(
        class_name=class_name,
        class_value=value,
        ageing_bonus=float(waited_ms // every_ms * step),
        next_class=next_class,
        next_value=next_value,
        outranks_at_ms=outranks_at_ms,
        submitted_ms=submitted_ms,
        quota_used_ratio=quota_used_ratio,
        fairness_debt_gpu_hours=fairness_debt_gpu_hours,
    )
