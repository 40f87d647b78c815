"""The thresholds of wastage; every length in milliseconds, every share between 0 and 1."""

from dataclasses import dataclass
from fractions import Fraction

from domain.errors import PolicyError

_MINUTE = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WastageRules:
    """
    The defaults of definitions 5 and 7.

    Args:
        startup_limit_ms: start-up beyond it is charged.
        idle_below: activity under this share is low.
        idle_after_ms: low activity this long is idle.
        gap_after_ms: samples missing this long are a gap, which ends a stretch; shorter holes are
            missing samples. Prometheus calls a series stale after the same five minutes.
        resident_above: idle with more than this share of the memory in use is resident idle.
        least_samples: below this share of samples nobody is accused.
        assumed_interval_ms: between checkpoints, where nobody published one.
        short_run_ms: a run at most this long is lost whole from the second failure on.

    Raises:
        PolicyError: a length is not positive, or a share not between 0 and 1.
    """

    startup_limit_ms: int = 5 * _MINUTE
    idle_below: float = 0.05
    idle_after_ms: int = 15 * _MINUTE
    gap_after_ms: int = 5 * _MINUTE
    resident_above: float = 0.5
    least_samples: Fraction = Fraction(8, 10)
    assumed_interval_ms: int = 15 * _MINUTE
    short_run_ms: int = 120 * _MINUTE

    def __post_init__(self) -> None:
        lengths = ("startup_limit_ms", "idle_after_ms", "gap_after_ms", "assumed_interval_ms", "short_run_ms")
        for name in lengths:
            if getattr(self, name) <= 0:
                message = (
                    f"wastage.{name} = {getattr(self, name)}: expected a positive length, for example 5m"
                )
                raise PolicyError(message)
        for name in ("idle_below", "resident_above", "least_samples"):
            if not 0 < getattr(self, name) <= 1:
                message = f"wastage.{name} = {getattr(self, name)}: expected a share above 0 and at most 1"
                raise PolicyError(message)


DEFAULT_RULES = WastageRules()
