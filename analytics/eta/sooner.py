"""What would let a workload start sooner: other ways to ask, each with its own estimate, the best first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from analytics.eta.estimate import CLASS, ENOUGH, QUEUE, Estimate, Past, Rung
from analytics.eta.waits import FOREVER_MS, Ask, Waits
from domain.window import MS_PER_HOUR

# A median is clearly better that is at most this part of the present one, and by so much at least.
_PART: Final = 0.7
_AT_LEAST_MS: Final = 5 * 60_000
_WEEK_MS: Final = 7 * 24 * MS_PER_HOUR
# The epoch began on a Thursday.
_MONDAY_MS: Final = 4 * 24 * MS_PER_HOUR
# Hours of the week are taken together in blocks of so many.
_BLOCK_HOURS: Final = 3
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Way(StrEnum):
    """What is done otherwise."""

    FEWER_GPUS = "fewer_gpus"
    FLAVOR = "flavor"
    QUEUE = "queue"
    OFF_PEAK = "off_peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """
    One way, in words, with what it takes for granted.

    `fits_now`: whether there are room and quota for it at this instant; None where that was not tried.
    `estimate`: of its wait from the beginning; None where like work never waited, or too rarely.
    """

    way: Way
    what: str
    assumes: str
    fits_now: bool | None = None
    estimate: Estimate | None = None

    def gain_ms(self, now_ms: float | None) -> float | None:
        """By how much its median is shorter than the present one; None where either is not known."""
        if now_ms is None or self.estimate is None:
            return None
        return now_ms - self.estimate.median_ms


def sooner(options: Iterable[Option], now_ms: float | None) -> list[Option]:
    """
    Those that are clearly better: what fits now, as it is given, then the others, who waits shortest first.

    Args:
        options: to choose from; what changes least comes first.
        now_ms: the median as it is; None where it never starts as it is, or nobody can tell.
    """

    def is_better(option: Option) -> bool:
        if option.fits_now:
            return True
        gain_ms = option.gain_ms(now_ms)
        if gain_ms is None or option.estimate is None or now_ms is None:
            return False
        return option.estimate.median_ms <= _PART * now_ms and gain_ms >= _AT_LEAST_MS

    def order(option: Option) -> tuple[bool, float]:
        if option.fits_now or option.estimate is None:
            return not option.fits_now, 0.0
        return True, option.estimate.median_ms

    return sorted(filter(is_better, options), key=order)


def off_peak(past: Past, ask: Ask, as_of_ms: int) -> tuple[str, Estimate] | None:
    """
    The three hours of the week in which like work that was submitted then waited least, and how long.

    Of its queue and class, else of its class; blocks in which fewer than ten started do not count.
    None where there are none.
    """
    for rung in (QUEUE, CLASS):
        found = _least(past.waits, rung, ask, as_of_ms)
        if found is not None:
            return found
    return None


def _least(waits: Waits, rung: Rung, ask: Ask, as_of_ms: int) -> tuple[str, Estimate] | None:
    alike = (waits.submitted_ms < as_of_ms) & waits.placed & (waits.until_ms < min(as_of_ms, FOREVER_MS))
    alike &= ~waits.again
    for name in rung:
        alike &= getattr(waits, name) == getattr(ask, name)
    submitted_ms, lengths_ms = waits.submitted_ms[alike], (waits.until_ms - waits.submitted_ms)[alike]
    block = (submitted_ms - _MONDAY_MS) % _WEEK_MS // (_BLOCK_HOURS * MS_PER_HOUR)
    best: tuple[int, Estimate] | None = None
    for number in np.unique(block):
        of_block = lengths_ms[block == number]
        if len(of_block) < ENOUGH:
            continue
        low, median, high = np.quantile(of_block, (0.1, 0.5, 0.9)).tolist()
        if best is None or median < best[1].median_ms:
            best = int(number), _estimate(rung, len(of_block), (low, median, high))
    if best is None:
        return None
    day, hour = divmod(best[0] * _BLOCK_HOURS, 24)
    return f"{_DAYS[day]} {hour:02}:00 to {hour + _BLOCK_HOURS:02}:00 UTC", best[1]


def _estimate(rung: Rung, number: int, quantiles_ms: Sequence[float]) -> Estimate:
    low, median, high = quantiles_ms
    return Estimate(low_ms=low, median_ms=median, high_ms=high, rung=rung, like=number, started=number)
