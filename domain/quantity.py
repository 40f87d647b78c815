"""
Quantities: Kubernetes' strings, quotas, and micro-GPU. The only place that converts.

A GPU quantity is an integer of micro-GPU; the parts of one card sum to exactly one card.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from domain.errors import QuantityError

MICRO_PER_GPU = 1_000_000
CPU = "cpu"
# No machine has as much, a million CPUs or 9 PB; and squares of the first and sums of the second fit.
_MOST_MILLI_CPUS, _MOST_UNITS = 10**9, 2**53
MEMORY = "memory"
# Our own names for what KAI's annotations ask for: parts of a card, and MiB of a card of unknown size.
MICRO_GPU = "kai.scheduler/micro-gpu"
GPU_MEMORY = "kai.scheduler/gpu-memory-mib"

# apimachinery's resource.Quantity: number, then a suffix or an exponent; E alone is exa.
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?")
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}

_MIG = "nvidia.com/mig-"
_SLICE_PROFILE = re.compile(r"(\d+)g\.(\d+)gb")
_SLICES_BY_PRODUCT = {"A100": 7, "A800": 7, "H100": 7, "H800": 7, "H200": 7, "B200": 7, "A30": 4}
# Profiles that exist on cards of one slice count only (NVIDIA MIG user guide, supported profiles).
_SLICES_BY_PROFILE = {
    "3g.20gb": 7, "3g.40gb": 7, "3g.48gb": 7, "3g.71gb": 7, "3g.90gb": 7, "7g.40gb": 7,
    "7g.80gb": 7, "7g.94gb": 7, "7g.141gb": 7, "7g.180gb": 7, "1g.5gb": 7, "2g.10gb": 7,
    "1g.10gb": 7, "2g.20gb": 7, "4g.20gb": 7, "4g.40gb": 7, "2g.12gb": 4, "4g.24gb": 4,
}  # fmt: skip


def parse_quantity(text: str | int) -> Decimal:
    """
    The exact value of a Kubernetes quantity.

    Source: apimachinery `pkg/api/resource/quantity.go`.

    >>> parse_quantity("1500m"), parse_quantity("1Ki"), parse_quantity("1E")
    (Decimal('1.500'), Decimal('1024'), Decimal('1000000000000000000'))

    Raises:
        QuantityError: not a quantity, an empty string included.
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is None or isinstance(text, bool):
        message = f"quantity {text!r}: expected a number with an optional suffix, for example 8, 500m or 16Gi"
        raise QuantityError(message)
    number, exponent, suffix = match.groups()
    value = Decimal(number)
    if exponent:
        return value.scaleb(int(exponent[1:]))
    if suffix in _BINARY_SUFFIXES:
        return value * Decimal(1024) ** _BINARY_SUFFIXES[suffix]
    return value * Decimal(10) ** _DECIMAL_SUFFIXES.get(suffix or "", 0)


def parse_count(text: str | int) -> int:
    """
    A whole, non-negative number of devices.

    Raises:
        QuantityError: not a quantity, negative, or not whole (extended resources are whole).
    """
    value = parse_quantity(text)
    if value < 0 or value != value.to_integral_value():
        message = f"device count {text!r}: expected a whole number of at least 0"
        raise QuantityError(message)
    return int(value)


def as_scheduled(milli: Mapping[str, int]) -> dict[str, int]:
    """
    Amounts as a scheduler counts them: CPU in thousandths, all else in whole units, which it rounds up.

    More than a million CPUs, or 2**53 units, counts as that.

    Args:
        milli: amounts in thousandths of their units, by resource name.

    Source: `Resource.Add` in kube-scheduler (pkg/scheduler/framework/types.go).

    >>> as_scheduled({"cpu": 1500, "memory": 1_000_001})
    {'cpu': 1500, 'memory': 1001}
    >>> as_scheduled({"cpu": 10**30, "memory": 10**30})
    {'cpu': 1000000000, 'memory': 9007199254740992}
    """
    return {
        name: min(count, _MOST_MILLI_CPUS) if name == CPU else min(-(-count // 1000), _MOST_UNITS)
        for name, count in milli.items()
    }


class QuotaKind(StrEnum):
    """A quota is a number, no limit at all, or a field that nobody wrote."""

    NUMBER = "number"
    UNLIMITED = "unlimited"
    NOT_SET = "not_set"


@dataclass(frozen=True, slots=True)
class Quota:
    """
    A quota value; `milli` is thousandths of the resource's unit and 0 unless it is a number.

    `written` is the field as the object has it, text or number: what a patch has to test.
    """

    kind: QuotaKind
    milli: int = 0
    written: str | int | float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, written: str | int | None) -> "Quota":
        """
        What a quota field says. None and a missing key are *not set*, never 0.

        >>> Quota.of("8").milli, Quota.of(None).kind.value
        (8000, 'not_set')

        Raises:
            QuantityError: not a quantity, an empty string included.
        """
        if written is None:
            return cls(QuotaKind.NOT_SET)
        return cls(QuotaKind.NUMBER, int(parse_quantity(written) * 1000))

    @classmethod
    def unlimited(cls) -> "Quota":
        """No limit."""
        return cls(QuotaKind.UNLIMITED)


def is_gpu_resource(name: str) -> bool:
    """
    Whether a resource name is a share of an NVIDIA GPU.

    >>> [is_gpu_resource(name) for name in ("nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "cpu")]
    [True, True, False]
    """
    return name in ("nvidia.com/gpu", "nvidia.com/gpu.shared") or name.startswith(_MIG)


def mig_slices(profile: str, product: str) -> tuple[int, int] | None:
    """
    Compute slices of a MIG profile and of its card; None where the card is unknown, never 7.

    >>> mig_slices("3g.40gb", ""), mig_slices("1g.6gb", "NVIDIA-A30"), mig_slices("1g.6gb", "")
    ((3, 7), (1, 4), None)
    """
    match = _SLICE_PROFILE.match(profile)
    if match is None:
        return None
    by_product = next((count for model, count in _SLICES_BY_PRODUCT.items() if model in product), None)
    of_card = by_product or _SLICES_BY_PROFILE.get(match.group(0))
    return (int(match.group(1)), of_card) if of_card else None


@lru_cache(maxsize=1024)
def card_share(resource: str, *, product: str = "", replicas: int | None = None) -> Fraction | None:
    """
    The part of a card that one unit of a resource is; None where it cannot be known, 0 for no GPU.

    Args:
        resource: its name. Where every card of a node is cut alike (MIG strategy `single`), `nvidia.com/gpu`
            is an instance too, and the product's name tells which.
        product: the node's label `nvidia.com/gpu.product`.
        replicas: the node's label `nvidia.com/gpu.replicas`, time-slices or MPS shares of a card.

    >>> str(card_share("nvidia.com/mig-3g.40gb")), str(card_share("nvidia.com/gpu", replicas=4))
    ('3/7', '1/4')
    >>> str(card_share("nvidia.com/gpu", product="NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"))
    '1/7'
    """
    if resource == MICRO_GPU:
        return Fraction(1, MICRO_PER_GPU)
    if resource == GPU_MEMORY:
        return None
    if not is_gpu_resource(resource):
        return Fraction(0)
    is_shared = resource.endswith(".shared")
    if is_shared and (replicas is None or (resource.startswith(_MIG) and replicas == 1)):
        return None
    profile = resource.removeprefix(_MIG) if resource.startswith(_MIG) else product.partition("-MIG-")[2]
    if not profile:
        return Fraction(1, max(replicas or 1, 1))
    slices = mig_slices(profile, product)
    # Instances are told apart from shares of them by the resource's name, or by the product's.
    shares = max(replicas or 1, 1) if is_shared or product.endswith("-SHARED") else 1
    return None if slices is None else Fraction(*slices) / shares


def micro_gpus(resources: dict[str, int], *, product: str = "", replicas: int | None = None) -> int | None:
    """
    Micro-GPU of a set of resources on a node; None where a part of it cannot be known.

    The set is rounded down once and as a whole, so that seven sevenths are a card, and what pods hold
    never sums to more than their cards.

    Args:
        resources: whole units by resource name; others than GPUs count nothing.
        product: as in `card_share`.
        replicas: as in `card_share`.

    >>> micro_gpus({"nvidia.com/gpu": 2, "cpu": 8}), micro_gpus({"nvidia.com/mig-3g.40gb": 1})
    (2000000, 428571)
    >>> micro_gpus({"nvidia.com/mig-1g.10gb": 7}), micro_gpus({"nvidia.com/gpu.shared": 3}, replicas=4)
    (1000000, 750000)
    """
    total = _cards(resources, product, replicas)
    return None if total is None else math.floor(total * MICRO_PER_GPU)


def offered_micro_gpus(
    resources: dict[str, int], *, product: str = "", replicas: int | None = None
) -> int | None:
    """
    Micro-GPU of what a node offers, to the nearest; None where a part of it cannot be known.

    With what is left of the cards that makes whole cards: the largest remainder of two parts.

    >>> offered_micro_gpus({"nvidia.com/mig-1g.10gb": 14, "nvidia.com/mig-3g.40gb": 4})
    3714286
    """
    total = _cards(resources, product, replicas)
    return None if total is None else math.floor(total * MICRO_PER_GPU + Fraction(1, 2))


def _cards(resources: dict[str, int], product: str, replicas: int | None) -> Fraction | None:
    total = Fraction(0)
    for resource, count in resources.items():
        share = card_share(resource, product=product, replicas=replicas)
        if share is None:
            return None
        total += count * share
    return total


def largest_remainder(total: int, weights: list[int]) -> list[int]:
    """
    Split a total into whole parts in proportion to weights; the parts sum to the total.

    Ties go to the earlier part.

    >>> largest_remainder(1_000_000, [1, 1, 1])
    [333334, 333333, 333333]
    >>> largest_remainder(5, [1, 2, 4])
    [1, 1, 3]
    """
    whole = sum(weights)
    if whole <= 0:
        return [0] * len(weights)
    parts = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    return parts
