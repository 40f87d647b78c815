"""
Fairness debt: what the cluster owes to an entity, in GPU-hours; negative where the entity owes.

Old debt fades by half in every half-life of real time, however often it is evaluated.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from domain.errors import DataError, PolicyError
from domain.quantity import MICRO_PER_GPU

_MS_PER_HOUR = 3_600_000
_MICRO_GPU_MS_PER_GPU_HOUR = MICRO_PER_GPU * _MS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """
    A time in which neither entitlement nor holding changes: `[start_ms, end_ms)`, micro-GPU.

    Raises:
        DataError: it ends before it starts.
    """

    start_ms: int
    end_ms: int
    entitled: int
    received: int

    def __post_init__(self) -> None:
        if self.end_ms < self.start_ms:
            message = f"stretch from {self.start_ms} to {self.end_ms} ms: expected the start first"
            raise DataError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """
    An entity's account over a time, GPU-hours: closing = opening + entitled - received - forgiven.

    `closing` is the carried debt, and `forgiven` is integrated on its own, so that the equation
    proves something: `unexplained` is what it leaves, 0 but for rounding.
    """

    opening: float
    entitled: float
    received: float
    forgiven: float
    closing: float

    @property
    def unexplained(self) -> float:
        """What the account cannot explain, GPU-hours."""
        return self.closing - (self.opening + self.entitled - self.received - self.forgiven)


def carry_debt(debt: float, *, gap_gpus: float, elapsed_ms: int, half_life: timedelta | None) -> float:
    """
    The debt after a time in which the gap, entitled less received GPUs, was constant; GPU-hours.

    D(t + dt) = D(t) 2^(-dt/h) + gap (h / ln 2) (1 - 2^(-dt/h)): exact, so that one long step equals
    many short ones.

    >>> from datetime import timedelta
    >>> carry_debt(8.0, gap_gpus=0.0, elapsed_ms=7 * 86_400_000, half_life=timedelta(days=7))
    4.0

    Raises:
        PolicyError: the half-life is missing or not positive. It is never taken for a reset.
    """
    return carried(debt, gap_gpus=gap_gpus, elapsed_ms=elapsed_ms, half_life=half_life)[0]


def forgiven_debt(debt: float, *, gap_gpus: float, elapsed_ms: int, half_life: timedelta | None) -> float:
    """
    How much debt faded in that time, GPU-hours: the integral of D(s) ln 2 / h over it.

    Negative where a debt to the cluster faded.

    Raises:
        PolicyError: the half-life is missing or not positive.
    """
    return carried(debt, gap_gpus=gap_gpus, elapsed_ms=elapsed_ms, half_life=half_life)[1]


def carried(
    debt: float, *, gap_gpus: float, elapsed_ms: int, half_life: timedelta | None
) -> tuple[float, float]:
    """Both, `carry_debt` and `forgiven_debt`: a sweep asks for them together, at each of its stretches."""
    half_life_hours = _hours(half_life)
    hours = elapsed_ms / _MS_PER_HOUR
    # How much of the time still counts at its end, hours: (h / ln 2) (1 - 2^(-dt/h)).
    rate = math.log(2) / half_life_hours
    counted = -math.expm1(-hours * rate) / rate
    return (
        debt * math.pow(2, -hours / half_life_hours) + gap_gpus * counted,
        debt * counted * math.log(2) / half_life_hours + gap_gpus * (hours - counted),
    )


def ledger(stretches: Iterable[Stretch], *, opening: float, half_life: timedelta | None) -> Ledger:
    """
    The account over stretches that follow each other without a hole.

    Raises:
        DataError: a stretch does not start where the one before ends; nothing is known of a hole.
        PolicyError: the half-life is missing or not positive.
    """
    _hours(half_life)
    debt, entitled, received, forgiven = opening, 0, 0, 0.0
    before: Stretch | None = None
    for stretch in stretches:
        _refuse_hole(before, stretch)
        elapsed_ms = stretch.end_ms - stretch.start_ms
        gap_gpus = (stretch.entitled - stretch.received) / MICRO_PER_GPU
        forgiven += forgiven_debt(debt, gap_gpus=gap_gpus, elapsed_ms=elapsed_ms, half_life=half_life)
        debt = carry_debt(debt, gap_gpus=gap_gpus, elapsed_ms=elapsed_ms, half_life=half_life)
        entitled += stretch.entitled * elapsed_ms
        received += stretch.received * elapsed_ms
        before = stretch
    return Ledger(
        opening=opening,
        entitled=entitled / _MICRO_GPU_MS_PER_GPU_HOUR,
        received=received / _MICRO_GPU_MS_PER_GPU_HOUR,
        forgiven=forgiven,
        closing=debt,
    )


def most_owed_first(debts: Mapping[str, float | Fraction]) -> list[str]:
    """
    Names by debt, the largest first, then by name.

    >>> most_owed_first({"b": 0.0, "a": 0.0, "c": 2.5})
    ['c', 'a', 'b']
    """
    return sorted(debts, key=lambda name: (-debts[name], name))


def _hours(half_life: timedelta | None) -> float:
    if half_life is None or half_life <= timedelta():
        message = f"half-life of the fairness debt = {half_life}: expected a positive length, for example 7d"
        raise PolicyError(message)
    return half_life / timedelta(hours=1)


def _refuse_hole(before: Stretch | None, stretch: Stretch) -> None:
    if before is not None and before.end_ms != stretch.start_ms:
        message = (
            f"stretch from {stretch.start_ms} ms after one to {before.end_ms} ms: expected no hole and no"
            " overlap; write what is known of the time between as a stretch"
        )
        raise DataError(message)
