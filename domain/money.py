"""
Money: currencies, the price book, and the only places where amounts are rounded and split.

An amount on its way is exact, in `PARTS` of a currency unit, because an hour has a factor 9 and its cost
need not end in decimals. It becomes a Decimal once, when it is rounded or apportioned to the minor unit.
"""

import fnmatch
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from itertools import cycle
from typing import Final, TypeAlias, TypeVar

from typing_extensions import override

from domain.errors import PolicyError
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR, format_instant

MICRO_GPU_MS_PER_GPU_HOUR: Final = MICRO_PER_GPU * MS_PER_HOUR
_PRICE_PARTS: Final = 10**12
# Of a currency unit: what GPU-time costs is a whole number of them at any price of at most twelve decimals,
# and whole numbers are added at a tenth of what fractions cost. A share may still be a fraction.
PARTS: Final = MICRO_GPU_MS_PER_GPU_HOUR * _PRICE_PARTS
# ISO 4217, table A.1: the currencies whose minor unit is not a hundredth, by its digits.
_DIGITS: Final = {
    code: digits
    for digits, codes in {
        0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
        3: "BHD IQD JOD KWD LYD OMR TND",
        4: "CLF UYW",
    }.items()
    for code in codes.split()
}
# Two prices of a book of a thousand have the same fingerprint once in 500 million books.
_REFERENCE_DIGITS: Final = 12
Name = TypeVar("Name", str, tuple[str, ...])
Exact: TypeAlias = int | Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Currency:
    """A currency by its ISO 4217 code; `digits` are the decimals of its minor unit."""

    code: str
    digits: int

    @classmethod
    def of(cls, code: str) -> "Currency":
        """
        The currency of that code.

        >>> Currency.of("EUR").digits, Currency.of("JPY").digits
        (2, 0)

        Raises:
            PolicyError: not three capital letters.
        """
        if not (len(code) == 3 and code.isascii() and code.isalpha() and code.isupper()):
            message = f"currency {code!r}: expected an ISO 4217 code, for example EUR"
            raise PolicyError(message)
        return cls(code=code, digits=_DIGITS.get(code, 2))

    def amount(self, minor: int) -> Decimal:
        """
        So many minor units, with all decimals written.

        >>> str(Currency.of("EUR").amount(400))
        '4.00'
        """
        return Decimal(minor).scaleb(-self.digits)

    def units(self, amount: Decimal) -> int:
        """
        An amount in minor units; it has no decimals beyond them.

        >>> Currency.of("EUR").units(Decimal("4.00"))
        400
        """
        return int(amount.scaleb(self.digits))

    def minor(self, exact: Fraction) -> int:
        """
        An exact amount in minor units, rounded half to even.

        >>> [Currency.of("EUR").minor(Fraction(cents, 1000)) for cents in (5, 15, 25)]
        [0, 2, 2]
        """
        return round(exact * Fraction(10**self.digits))

    def round(self, exact: Fraction) -> Decimal:
        """An exact amount rounded half to even to the minor unit."""
        return self.amount(self.minor(exact))


def apportion(
    total: int, exact: Mapping[Name, Exact], carried: Mapping[Name, Exact] | None = None, *, unit: int = 1
) -> dict[Name, int]:
    """
    A total of minor units in whole parts near to exact ones; the parts sum to the total.

    Largest remainder: each part is rounded down, and what is left goes to the largest remainders,
    ties by name. No part is negative.

    Args:
        total: minor units, at least 0.
        exact: what each would get to the fraction, in parts of a minor unit, at least 0.
        carried: what earlier apportionings still owe each (negative: gave too much), so that over
            many days the same name does not gain each time; in the same parts.
        unit: how many of these parts make a minor unit.

    >>> apportion(10_000, dict.fromkeys("abc", Fraction(10_000, 3)))
    {'a': 3334, 'b': 3333, 'c': 3333}

    Raises:
        PolicyError: the total is negative, or there is something to split and nobody to give it to.
    """
    if total < 0:
        message = f"{total} minor units to split: expected at least 0"
        raise PolicyError(message)
    if not exact:
        if total:
            message = f"{total} minor units to split among nobody: name who pays what nobody used"
            raise PolicyError(message)
        return {}
    owed = carried or {}
    wanted = {name: exact[name] + owed.get(name, 0) for name in sorted(exact)}
    parts = {name: max(0, int(want // unit)) for name, want in wanted.items()}
    left = total - sum(parts.values())
    if left == 0:
        return parts
    # Sorting keeps the order of names among equals.
    order = sorted(wanted, key=lambda name: parts[name] * unit - wanted[name])
    for name in cycle(order if left > 0 else reversed(order)):
        if left == 0:
            break
        step = 1 if left > 0 else -min(1, parts[name])
        parts[name] += step
        left -= step
    return parts


class CapacityType(StrEnum):
    """How a node was bought."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """
    What is priced: a GPU of a model, on a node of a flavor and node pool, with labels, bought in some way.

    `mig_profile` is the one into which all GPUs of the node are cut; empty where they are not, or differ.
    """

    gpu_model: str
    flavor: str = ""
    pool: str = ""
    mig_profile: str = ""
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    node_labels: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """
    A row of the price book: currency units per GPU-hour, in `[valid_from_ms, valid_to_ms)`.

    `listed` is the public price, `contracted` the negotiated one, `effective` that with commitments
    spread over their use; each is the one before where it is not given. Patterns are shell globs. `note` says
    how the list price came about, where it was not given as it is.
    """

    listed: Decimal
    valid_from_ms: int
    contracted: Decimal | None = None
    effective: Decimal | None = None
    gpu_model: str = "*"
    flavor: str = "*"
    pool: str = "*"
    mig_profile: str = "*"
    capacity_type: CapacityType | None = None
    node_labels: frozenset[tuple[str, str]] = frozenset()
    valid_to_ms: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("listed", "contracted", "effective"):
            value: Decimal | None = getattr(self, name)
            if value is not None and not (value.is_finite() and value >= 0):
                message = f"price, {name} = {value}: expected a number of at least 0 per GPU-hour"
                raise PolicyError(message)
        if self.valid_to_ms is not None and self.valid_to_ms <= self.valid_from_ms:
            message = f"price from {format_instant(self.valid_from_ms)}: it ends before it begins"
            raise PolicyError(message)

    @override
    def __hash__(self) -> int:
        # Each line of a month looks for its price; all fields would cost ten times as much.
        return hash((self.valid_from_ms, self.gpu_model, self.flavor))

    @property
    def contracted_price(self) -> Decimal:
        """The negotiated price per GPU-hour."""
        return self.listed if self.contracted is None else self.contracted

    @property
    def effective_price(self) -> Decimal:
        """The price per GPU-hour with commitments spread over their use."""
        return self.contracted_price if self.effective is None else self.effective

    @property
    def reference(self) -> str:
        """What a line calls this row: a fingerprint of all that it says, the same in every price book."""
        told: list[object] = [self.valid_from_ms, self.valid_to_ms, *self.conditions[1:]]
        told += [None if each is None else f"{each.normalize():f}" for each in self._amounts]
        told += sorted(map(list, self.node_labels))
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:_REFERENCE_DIGITS]

    @property
    def _amounts(self) -> tuple[Decimal | None, ...]:
        return self.listed, self.contracted, self.effective

    @property
    def conditions(self) -> tuple[frozenset[tuple[str, str]], str, str, str, str, str]:
        """Which SKUs it is for."""
        bought = self.capacity_type or "*"
        return self.node_labels, self.flavor, self.pool, self.mig_profile, bought, self.gpu_model

    def holds(self, sku: Sku, at_ms: int) -> bool:
        """Whether it is for that SKU at that instant."""
        return (
            self.valid_from_ms <= at_ms
            and (self.valid_to_ms is None or at_ms < self.valid_to_ms)
            and self.node_labels <= sku.node_labels
            and fnmatch.fnmatchcase(sku.flavor, self.flavor)
            and fnmatch.fnmatchcase(sku.pool, self.pool)
            and fnmatch.fnmatchcase(sku.mig_profile, self.mig_profile)
            and self.capacity_type in {None, sku.capacity_type}
            and fnmatch.fnmatchcase(sku.gpu_model, self.gpu_model)
        )

    def rank(self) -> tuple[int, bool, bool, bool, bool, bool, int]:
        """How closely it names its SKUs: labels, flavor, pool, profile, buying, model; then the newest."""
        labels, *patterns = self.conditions
        flavor, pool, profile, bought, model = (pattern != "*" for pattern in patterns)
        return len(labels), flavor, pool, profile, bought, model, self.valid_from_ms


@dataclass(frozen=True, slots=True)
class PriceBook:
    """
    Effective-dated prices.

    Of those that hold, the one that names the SKU most closely counts, then the newest; rows may
    stand in any order.

    Raises:
        PolicyError: two rows for the same SKUs begin at the same instant.
    """

    prices: Sequence[Price]

    def __post_init__(self) -> None:
        seen = set()
        for price in self.prices:
            key = (price.conditions, price.valid_from_ms)
            if key in seen:
                message = (
                    f"price book, {price.gpu_model} from {format_instant(price.valid_from_ms)}: stands there"
                    " twice; expected one row for the same conditions and instant"
                )
                raise PolicyError(message)
            seen.add(key)

    def price(self, sku: Sku, at_ms: int) -> Price:
        """
        The row for a SKU at an instant.

        Raises:
            PolicyError: no row holds; an unknown price is not 0.
        """
        found = [price for price in self.prices if price.holds(sku, at_ms)]
        if not found:
            message = (
                f"price book: no price for model {sku.gpu_model!r}, flavor {sku.flavor!r}, pool {sku.pool!r},"
                f" {sku.capacity_type} at {format_instant(at_ms)}{self._last(sku, at_ms)};"
                " add a row that holds then"
            )
            raise PolicyError(message)
        return max(found, key=lambda price: (price.rank(), sorted(price.node_labels), price.conditions[1:]))

    def _last(self, sku: Sku, at_ms: int) -> str:
        """When the last one that was for it ended, as the end of a purchase's years; empty where none was."""
        ended = [
            price.valid_to_ms
            for price in self.prices
            if price.valid_to_ms is not None
            and price.valid_to_ms <= at_ms
            and price.holds(sku, price.valid_to_ms - 1)
        ]
        return f" (the last one ended at {format_instant(max(ended))})" if ended else ""

    def changes_ms(self) -> list[int]:
        """Every instant at which a price may change."""
        ends = (price.valid_to_ms for price in self.prices if price.valid_to_ms is not None)
        return sorted({*(price.valid_from_ms for price in self.prices), *ends})


def cost(micro_gpu_ms: int, per_gpu_hour: Decimal) -> Exact:
    """
    What GPU-time costs, exactly, in `PARTS` of a currency unit.

    >>> cost(8 * MICRO_GPU_MS_PER_GPU_HOUR, Decimal("2.50")) == 20 * PARTS
    True
    """
    return micro_gpu_ms * _parts_of(per_gpu_hour)


@lru_cache(maxsize=1024)
def _parts_of(per_gpu_hour: Decimal) -> Exact:
    """What a micro-GPU-millisecond costs."""
    numerator, denominator = per_gpu_hour.as_integer_ratio()
    whole, rest = divmod(numerator * _PRICE_PARTS, denominator)
    return Fraction(numerator * _PRICE_PARTS, denominator) if rest else whole
