"""Who was behind whom at the last look: what it takes half a second to find out is found once a minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from analytics.why.reason import Finding

# An order that is older than that is found anew.
_FRESH_MS: Final = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """
    The order of all that waited for quota in a cluster at an instant.

    `behind` has those that would wait for others only, as `analytics.why.order.queue_order` gives them;
    `known` is everybody who waited.
    """

    at_ms: int
    behind: Mapping[str, Finding]
    known: frozenset[str]


@dataclass(slots=True)
class Orders:
    """The newest order of each cluster; for any thread."""

    _orders: dict[str, Order] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def keep(self, cluster: str, order: Order) -> None:
        """This is the newest one now."""
        with self._lock:
            self._orders[cluster] = order

    def of(self, cluster: str, as_of_ms: int) -> Order | None:
        """The order of just before an instant; None where it was not looked at lately, or later only."""
        with self._lock:
            order = self._orders.get(cluster)
        fresh = order is not None and 0 <= as_of_ms - order.at_ms <= _FRESH_MS
        return order if fresh else None
