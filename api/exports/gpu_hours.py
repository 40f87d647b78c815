"""GPU-hours as decimals."""

from decimal import Decimal
from typing import Final, overload

from domain.money import MICRO_GPU_MS_PER_GPU_HOUR

DIGITS: Final = 9
_UNITS: Final = MICRO_GPU_MS_PER_GPU_HOUR // 10**DIGITS


@overload
def gpu_hours(micro_gpu_ms: int) -> Decimal: ...
@overload
def gpu_hours(micro_gpu_ms: int | None) -> Decimal | None: ...
def gpu_hours(micro_gpu_ms: int | None) -> Decimal | None:
    """
    GPU-hours, rounded half to even to a billionth; None stays None.

    An hour has a factor 9, so not every time is a decimal: exact sums are those of micro-GPU-milliseconds.

    >>> gpu_hours(1_500_000 * 3_600_000), gpu_hours(1_000_000)
    (Decimal('1.500000000'), Decimal('2.78E-7'))
    """
    if micro_gpu_ms is None:
        return None
    whole, rest = divmod(micro_gpu_ms, _UNITS)
    whole += 2 * rest > _UNITS or (2 * rest == _UNITS and whole % 2)
    return Decimal(whole).scaleb(-DIGITS)
