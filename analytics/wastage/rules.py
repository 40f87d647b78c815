"""The thresholds of wastage as arithmetic wants them: whole milliseconds and exact shares."""

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from domain.policy import Policy

_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WastageRules:
    """
    The part of the policy that causes depend on; `rules_of` makes it, so that defaults stand once.

    Args:
        startup_limit_ms: start-up beyond it is charged.
        idle_after_ms: low activity this long is idle.
        least_samples: below this share of samples nobody is accused.
        assumed_interval_ms: between checkpoints, where nobody published one and the class has no budget.
        short_run_ms: a run at most this long is lost whole from the second failure on.
    """

    startup_limit_ms: int
    idle_after_ms: int
    least_samples: Fraction
    assumed_interval_ms: int
    short_run_ms: int


def rules_of(policy: Policy) -> WastageRules:
    """
    The rules of a policy.

    >>> rules_of(Policy()).least_samples
    Fraction(4, 5)
    """
    return WastageRules(
        startup_limit_ms=policy.startup_limit // _MS,
        idle_after_ms=policy.idle_after // _MS,
        least_samples=Fraction(policy.least_samples).limit_denominator(1000),
        assumed_interval_ms=policy.assumed_checkpoint_interval // _MS,
        short_run_ms=policy.short_run // _MS,
    )


def checkpoint_budget_ms(policy: Policy, *, service_class: str, priority_class: str) -> int | None:
    """
    How old a checkpoint of such a workload may grow, milliseconds; None where the policy asks nothing.

    A budget for the priority class goes before one for the service class.

    >>> checkpoint_budget_ms(Policy(), service_class="batch", priority_class="")
    900000
    """
    budgets = policy.checkpoint_budgets
    found = budgets.get(priority_class) or budgets.get(service_class)
    return None if found is None else found // _MS


DEFAULT_RULES = rules_of(Policy())
