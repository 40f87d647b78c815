"""
Questions about ten million jobs, asked of the product and of its peers: waits, depth, money.

Each answer is flat, a value by a text of labels, so that answers can be compared.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import numpy as np

from benchmarks.seeded_jobs import DAY_MS, MODELS, START_MS, Cluster
from domain.window import MS_PER_HOUR, from_ms

Answer: TypeAlias = dict[str, Any]

# Prices per GPU-hour by model and day from which on they hold, and nothing else: what peers look up too.
PRICES: Final = (
    (MODELS[0], 0, Decimal("4.10")),
    (MODELS[0], 20, Decimal("3.95")),
    (MODELS[1], 0, Decimal("2.35")),
)
MICRO: Final = 1_000_000
QUANTILES: Final = (0.5, 0.9, 0.99)
# At so many instants the queue is looked at, the last one at the end.
INSTANTS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Where the same jobs lie: as Parquet, as a store; and of which cluster they are."""

    parquet: Path
    store: Path
    cluster: Cluster

    def told(self) -> dict[str, Any]:
        """The same as JSON, for a child."""
        return {"parquet": str(self.parquet), "store": str(self.store), "cluster": asdict(self.cluster)}

    @classmethod
    def read(cls, told: dict[str, Any]) -> Self:
        """What `told` wrote."""
        return cls(
            parquet=Path(told["parquet"]), store=Path(told["store"]), cluster=Cluster(**told["cluster"])
        )

    @property
    def window_start_ms(self) -> int:
        """Waits are asked from the second day on, so that some began before the window."""
        return START_MS + DAY_MS

    @property
    def instants_ms(self) -> list[int]:
        """When the queue is looked at, evenly over all days."""
        step_ms = self.cluster.days * DAY_MS // INSTANTS
        return [self.cluster.end_ms - place * step_ms for place in reversed(range(INSTANTS))]


def named(found: Iterable[tuple[str, str, float, str, float, bool]]) -> Answer:
    """Percentiles of waits: class, team, quantile, estimator, milliseconds, whether it is a lower bound."""
    return {
        f"{klass}|{team}|{quantile}|{estimator}": (round(value, 3), bound)
        for klass, team, quantile, estimator, value, bound in found
    }


def reached(ages: Any, survival: Any, largest: int, quantile: float) -> tuple[float, bool]:
    """The first age at which so many have ended; the largest age, as a lower bound, where none is."""
    place = int((1 - survival < quantile - 1e-12).sum())
    return (float(largest), True) if place == len(ages) else (float(ages[place]), False)


def curve(entry: Any, leaving: Any, placed: Any) -> tuple[Any, Any, int]:
    """Ages and what is left of one at each, for numpy columns of one group; and the largest age seen."""
    ages, ended = np.unique(leaving[placed], return_counts=True)
    entries, exits = np.sort(entry), np.sort(leaving)
    entered = np.searchsorted(entries, ages, "left")
    entered[ages == 0] = (entry == 0).sum()
    at_risk = entered - np.searchsorted(exits, ages, "left")
    largest = int(exits[-1]) if len(exits) else 0
    # A jump to zero before the largest age is not taken, and there the curve ends.
    taken = (at_risk > ended) | (ages == largest)
    stop = len(ages) if taken.all() else int(np.argmin(taken))
    return ages[:stop], np.cumprod(1 - ended[:stop] / at_risk[:stop]), largest


def priced(held: Iterable[tuple[tuple[int, str, str], int]]) -> Answer:
    """GPU-hours and cost, at each day's price, by day and team; the cost is rounded once, at the end."""
    prices = sorted(PRICES, key=lambda price: price[1])
    found: dict[tuple[int, str], list[Any]] = {}
    for (day, team, model), amount in held:
        price = next(price for of, since, price in reversed(prices) if of == model and since <= day)
        sums = found.setdefault((int(day), team), [0, Decimal(0)])
        sums[0] += int(amount)
        sums[1] += int(amount) * price
    unit = MICRO * MS_PER_HOUR
    return {
        f"{from_ms(START_MS + day * DAY_MS).date().isoformat()}|{team}": (
            amount / unit,
            str((cost / unit).quantize(Decimal("0.01"), ROUND_HALF_EVEN)),
        )
        for (day, team), (amount, cost) in found.items()
    }
